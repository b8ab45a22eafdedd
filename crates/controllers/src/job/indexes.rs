//! Sets of completion indexes, written as `1,3-5,7`.

use std::fmt;

/// Indexes in order, as ranges that neither overlap nor touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Indexes(Vec<(i64, i64)>);

impl Indexes {
    /// Reads the text form. Indexes from `completions` on are left out, and so is what cannot be read.
    pub fn parse(text: &str, completions: i64) -> Indexes {
        let mut out = Indexes::default();
        for range in text.split(',').filter(|r| !r.is_empty()) {
            let mut ends = range.split('-').map(|end| end.parse::<i64>().ok());
            let (Some(Some(first)), last) = (ends.next(), ends.next()) else { continue };
            let last = match last {
                None => first,
                Some(Some(last)) => last.min(completions.saturating_sub(1)),
                Some(None) => continue,
            };
            if first >= completions {
                break;
            }
            out.append(first, last);
        }
        out
    }

    /// Indexes in any order, repeated or not.
    pub fn of(indexes: impl IntoIterator<Item = i64>) -> Indexes {
        let mut sorted: Vec<i64> = indexes.into_iter().collect();
        sorted.sort_unstable();
        let mut out = Indexes::default();
        sorted.into_iter().for_each(|i| out.append(i, i));
        out
    }

    /// Those of both.
    pub fn with(&self, other: &Indexes) -> Indexes {
        let mut all: Vec<(i64, i64)> = self.0.iter().chain(&other.0).copied().collect();
        all.sort_unstable();
        let mut out = Indexes::default();
        all.into_iter().for_each(|(first, last)| out.append(first, last));
        out
    }

    /// How many there are.
    pub fn len(&self) -> i64 {
        self.0
            .iter()
            .fold(0, |count, (first, last)| last.saturating_sub(*first).saturating_add(1).saturating_add(count))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an index is among them.
    pub fn has(&self, index: i64) -> bool {
        let at = self.0.partition_point(|(_, last)| *last < index);
        self.0.get(at).is_some_and(|(first, _)| *first <= index)
    }

    /// How many are in both.
    pub fn in_both(&self, other: &Indexes) -> i64 {
        let (mut i, mut j, mut count) = (0, 0, 0i64);
        while let (Some(a), Some(b)) = (self.0.get(i), other.0.get(j)) {
            let common = a.1.min(b.1).saturating_sub(a.0.max(b.0)).saturating_add(1);
            count = common.max(0).saturating_add(count);
            if a.1 < b.1 { i += 1 } else { j += 1 }
        }
        count
    }

    /// The first `count` indexes below `completions` that are not among them.
    pub fn first_missing(&self, count: usize, completions: i64) -> Vec<i64> {
        let mut out = Vec::new();
        let mut candidate = 0;
        let end = (completions, completions);
        for (first, last) in self.0.iter().copied().chain([end]) {
            while candidate < first.min(completions) && out.len() < count {
                out.push(candidate);
                candidate += 1;
            }
            candidate = candidate.max(last.saturating_add(1));
        }
        out
    }

    /// Adds a range that does not begin before those that are there.
    fn append(&mut self, first: i64, last: i64) {
        if last < first {
            return;
        }
        match self.0.last_mut() {
            Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
            _ => self.0.push((first, last)),
        }
    }
}

impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (first, last)) in self.0.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            match last.saturating_sub(*first) {
                0 => write!(f, "{comma}{first}")?,
                1 => write!(f, "{comma}{first},{last}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_read_and_written_in_short() {
        for (text, completions, written, len) in [
            ("", 5, "", 0),
            ("0", 5, "0", 1),
            ("0,1", 5, "0,1", 2),
            ("0,1,2", 5, "0-2", 3),
            ("0-9", 5, "0-4", 5),
            ("1,3-5,7", 100, "1,3-5,7", 5),
            ("1,7,9", 8, "1,7", 2),
            ("x,2,3-y,4", 8, "2,4", 2),
            ("5-1", 8, "", 0),
        ] {
            let indexes = Indexes::parse(text, completions);
            assert_eq!((indexes.to_string().as_str(), indexes.len()), (written, len), "{text}");
        }
    }

    #[test]
    fn sets_are_joined_and_compared() {
        let a = Indexes::parse("1,3-5", 10);
        assert_eq!(a.with(&Indexes::of([2, 9, 2])).to_string(), "1-5,9");
        assert_eq!(a.in_both(&Indexes::parse("0-4", 10)), 3);
        assert!(a.has(4) && !a.has(2) && !a.has(6));
        assert_eq!(a.first_missing(3, 10), [0, 2, 6]);
        assert_eq!(a.first_missing(9, 7), [0, 2, 6]);
        assert_eq!(Indexes::default().first_missing(2, 10), [0, 1]);
        assert!(Indexes::parse("0-9", 10).first_missing(2, 10).is_empty());
    }
}

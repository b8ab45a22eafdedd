//! How two texts differ, line by line.

use crate::terminal::{Colour, Style};

/// Lines of context around what differs.
const CONTEXT: usize = 3;
/// The most pairs of lines that are compared; what is larger is shown as replaced as a whole.
const MAX_PAIRS: usize = 4_000_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Edit {
    Keep,
    Remove,
    Add,
}

/// The lines that go (`-`) and come (`+`) from one text to another, with some around them; empty if there are none.
pub fn lines(old: &str, new: &str, style: Style) -> String {
    let all = edits(&old.lines().collect::<Vec<_>>(), &new.lines().collect::<Vec<_>>());
    let near: Vec<bool> = {
        let mut near = vec![false; all.len()];
        for (i, _) in all.iter().enumerate().filter(|(_, (edit, _))| *edit != Edit::Keep) {
            let range = i.saturating_sub(CONTEXT)..(i + CONTEXT + 1).min(all.len());
            near.get_mut(range).into_iter().flatten().for_each(|shown| *shown = true);
        }
        near
    };
    let mut out = String::new();
    let mut left_out = false;
    for ((edit, line), shown) in all.into_iter().zip(near) {
        if !shown {
            left_out = true;
            continue;
        }
        if std::mem::take(&mut left_out) {
            out += &style.paint(Colour::Cyan, "  ...");
            out.push('\n');
        }
        out += &match edit {
            Edit::Keep => format!("  {line}"),
            Edit::Remove => style.paint(Colour::Red, &format!("- {line}")),
            Edit::Add => style.paint(Colour::Green, &format!("+ {line}")),
        };
        out.push('\n');
    }
    out
}

/// The longest common lines stay.
fn edits<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<(Edit, &'t str)> {
    let before = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (head, old, new) = (
        old.get(..before).unwrap_or_default(),
        old.get(before..).unwrap_or_default(),
        new.get(before..).unwrap_or_default(),
    );
    let after = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    let (old, tail) = old.split_at(old.len() - after);
    let new = new.get(..new.len() - after).unwrap_or_default();
    let mut out: Vec<(Edit, &str)> = head.iter().map(|line| (Edit::Keep, *line)).collect();
    if old.len().saturating_mul(new.len()) > MAX_PAIRS {
        out.extend(old.iter().map(|line| (Edit::Remove, *line)));
        out.extend(new.iter().map(|line| (Edit::Add, *line)));
    } else {
        out.extend(middle(old, new));
    }
    out.extend(tail.iter().map(|line| (Edit::Keep, *line)));
    out
}

fn middle<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<(Edit, &'t str)> {
    let width = new.len() + 1;
    // How many lines what is left of both has in common, by where one is in both.
    let mut common = vec![0u32; (old.len() + 1) * width];
    let at = |common: &[u32], i: usize, j: usize| common.get(i * width + j).copied().unwrap_or_default();
    for (i, a) in old.iter().enumerate().rev() {
        for (j, b) in new.iter().enumerate().rev() {
            let best =
                if a == b { at(&common, i + 1, j + 1) + 1 } else { at(&common, i + 1, j).max(at(&common, i, j + 1)) };
            if let Some(cell) = common.get_mut(i * width + j) {
                *cell = best;
            }
        }
    }
    let (mut i, mut j, mut out) = (0, 0, Vec::new());
    loop {
        match (old.get(i), new.get(j)) {
            (None, None) => return out,
            (Some(a), Some(b)) if a == b => {
                out.push((Edit::Keep, *a));
                (i, j) = (i + 1, j + 1);
            }
            (Some(a), other) if other.is_none() || at(&common, i + 1, j) >= at(&common, i, j + 1) => {
                out.push((Edit::Remove, *a));
                i += 1;
            }
            (_, Some(b)) => {
                out.push((Edit::Add, *b));
                j += 1;
            }
            (Some(_), None) => return out,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_shown_with_what_is_around_it() {
        let style = Style::plain();
        for (old, new, expected) in [
            ("a\nb", "a\nb", ""),
            ("", "a\nb", "+ a\n+ b\n"),
            ("a\nb", "", "- a\n- b\n"),
            ("a\nb\nc", "a\nx\nc", "  a\n- b\n+ x\n  c\n"),
            ("a\nb\nc\nd", "b\nc\ne\nd", "- a\n  b\n  c\n+ e\n  d\n"),
            ("1\n2\n3\n4\n5\n6\n7\n8\n9", "1\n2\n3\n4\n5\n6\n7\n8\nx", "  ...\n  6\n  7\n  8\n- 9\n+ x\n"),
        ] {
            assert_eq!(lines(old, new, style), expected, "{old:?} {new:?}");
        }
    }

    #[test]
    fn texts_that_are_too_large_are_replaced_as_a_whole() {
        let (old, new): (String, String) =
            ((0..3000).map(|i| format!("a{i}\n")).collect(), (0..3000).map(|i| format!("b{i}\n")).collect());
        assert_eq!(lines(&old, &new, Style::plain()).lines().count(), 6000);
    }
}

//! Finding bytes fast: eight at a time, as one number.

/// How many numbers are looked at one by one before they are looked at in blocks: most texts end by then.
const NEAR: usize = 4;

/// The place of the first byte that `wanted` marks: it gets eight bytes as a number, the first one lowest, and sets the
/// highest bit of each byte that is wanted. Above the first one it may set others too.
#[inline(always)]
pub(crate) fn position(bytes: &[u8], wanted: impl Fn(u64) -> u64) -> Option<usize> {
    let (words, rest) = bytes.as_chunks::<8>();
    let find = |words: &[[u8; 8]]| {
        words.iter().enumerate().find_map(|(i, word)| Some(i * 8 + lowest(wanted(u64::from_le_bytes(*word)))?))
    };
    let (near, far) = words.split_at(words.len().min(NEAR));
    if let Some(at) = find(near) {
        return Some(at);
    }
    let without =
        |block: &&[[u8; 8]; NEAR]| block.iter().fold(0, |found, word| found | wanted(u64::from_le_bytes(*word))) == 0;
    let passed = far.as_chunks().0.iter().take_while(without).count() * NEAR;
    if let Some(at) = far.get(passed..).and_then(find) {
        return Some((near.len() + passed) * 8 + at);
    }
    let mut last = [0; 8];
    last.get_mut(..rest.len())?.copy_from_slice(rest);
    lowest(wanted(u64::from_le_bytes(last))).filter(|at| *at < rest.len()).map(|at| words.len() * 8 + at)
}

fn lowest(marks: u64) -> Option<usize> {
    (marks != 0).then(|| marks.trailing_zeros() as usize / 8)
}

/// Marks the bytes that are `byte`.
#[inline(always)]
pub(crate) fn equal(word: u64, byte: u8) -> u64 {
    below(word ^ every(byte), 1)
}

/// Marks the bytes that are less than `byte`, which is at most 128.
#[inline(always)]
pub(crate) fn below(word: u64, byte: u8) -> u64 {
    word.wrapping_sub(every(byte)) & !word & every(0x80)
}

/// Eight times this byte.
#[inline(always)]
pub(crate) const fn every(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_found_wherever_it_is() {
        for length in [0, 1, 7, 8, 9, 31, 32, 33, 64, 65, 100] {
            let mut bytes = vec![b'a'; length];
            let find = |bytes: &[u8]| position(bytes, |word| equal(word, b'x') | below(word, 0x20));
            assert_eq!(find(&bytes), None);
            for at in (0..length).rev() {
                for wanted in [0, 0x1f, b'x'] {
                    bytes[at] = wanted;
                    assert_eq!(find(&bytes), Some(at), "of {length}");
                }
            }
        }
    }

    #[test]
    fn each_byte_is_told_from_every_other() {
        for b in 0..=255u8 {
            for place in 0..8 {
                let mut bytes = [b'a'; 8];
                bytes[place] = b;
                let word = u64::from_le_bytes(bytes);
                assert_eq!(lowest(equal(word, b'"')), (b == b'"').then_some(place), "{b}");
                assert_eq!(lowest(below(word, 0x20)), (b < 0x20).then_some(place), "{b}");
            }
        }
    }
}

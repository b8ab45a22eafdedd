//! Finding bytes fast.

/// How many bytes are looked at together: a whole number of vector registers everywhere.
const BLOCK: usize = 32;

/// The place of the first byte that is `wanted`. Blocks in which there is none are passed over as a whole, for which
/// `wanted` should have no branches.
#[inline(always)]
pub(crate) fn position(bytes: &[u8], wanted: impl Fn(u8) -> bool) -> Option<usize> {
    let without = |block: &&[u8]| !block.iter().fold(false, |any, b| any | wanted(*b));
    let passed = bytes.chunks_exact(BLOCK).take_while(without).count() * BLOCK;
    let (_, rest) = bytes.split_at(passed);
    rest.iter().position(|b| wanted(*b)).map(|at| passed + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_found_wherever_it_is() {
        for length in [0, 1, 31, 32, 33, 64, 100] {
            let mut bytes = vec![b'a'; length];
            assert_eq!(position(&bytes, |b| b == b'x'), None);
            for at in (0..length).rev() {
                bytes[at] = b'x';
                assert_eq!(position(&bytes, |b| b == b'x'), Some(at), "of {length}");
            }
        }
    }
}

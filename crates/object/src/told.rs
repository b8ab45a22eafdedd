//! What is told of what strict reading does not let pass, with a bound.

/// How many bytes are told at most: a long key stands in the path of everything that is in it, so that a small text
/// could make very many long paths.
const MAX_BYTES: usize = 1 << 20;

/// Paths or sentences to tell, up to about a megabyte.
///
/// ```
/// let mut told = object::Told::default();
/// told.add_with(|| "spec.a".to_owned());
/// assert_eq!(told.into_vec(), ["spec.a"]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Told {
    texts: Vec<String>,
    bytes: usize,
}

impl Told {
    /// Adds a text, which is made only if there is room.
    pub fn add_with(&mut self, make: impl FnOnce() -> String) {
        if self.bytes < MAX_BYTES {
            let text = make();
            self.bytes += text.len() + size_of::<String>();
            self.texts.push(text);
        }
    }

    /// Whether nothing is told.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// The texts, in the order in which they were added.
    pub fn into_vec(self) -> Vec<String> {
        self.texts
    }
}

impl AsRef<[String]> for Told {
    fn as_ref(&self) -> &[String] {
        &self.texts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_not_made_again_and_again() {
        let (mut told, mut made) = (Told::default(), 0);
        for _ in 0..1000 {
            told.add_with(|| {
                made += 1;
                "x".repeat(MAX_BYTES / 10)
            });
        }
        assert_eq!((made, told.as_ref().len()), (10, 10));
    }
}

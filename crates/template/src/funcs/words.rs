//! Sprig's functions that change the case of words.

use super::{Table, text};

pub(super) const TABLE: Table = &[
    ("title", "s", |w, a| {
        let mut previous = ' ';
        let titled = text(a, 0).chars().fold(String::new(), |mut out, c| {
            // Go's Title: a letter after what is neither letter, digit nor underscore.
            if previous.is_alphanumeric() || previous == '_' || previous == '\'' {
                out.push(c);
            } else {
                out.extend(c.to_uppercase());
            }
            previous = c;
            out
        });
        w.heap.string(titled)
    }),
    ("untitle", "s", |w, a| {
        let mut after_space = true;
        let s: String = text(a, 0)
            .chars()
            .map(|c| {
                let lower = if after_space { c.to_lowercase().next().unwrap_or(c) } else { c };
                after_space = c.is_whitespace();
                lower
            })
            .collect();
        w.heap.string(s)
    }),
    ("swapcase", "s", |w, a| {
        let s: String = text(a, 0)
            .chars()
            .map(|c| {
                let swapped = if c.is_lowercase() { c.to_uppercase().next() } else { c.to_lowercase().next() };
                swapped.unwrap_or(c)
            })
            .collect();
        w.heap.string(s)
    }),
    ("initials", "s", |w, a| {
        w.heap.string(text(a, 0).split_whitespace().filter_map(|p| p.chars().next()).collect::<String>())
    }),
    ("snakecase", "s", |w, a| w.heap.string(words(&text(a, 0)).join("_"))),
    ("kebabcase", "s", |w, a| w.heap.string(words(&text(a, 0)).join("-"))),
    ("camelcase", "s", |w, a| w.heap.string(camel(&text(a, 0)))),
];

/// The words of a name in lower case: `HTTP20xOk` is `http`, `20x`, `ok`.
fn words(s: &str) -> Vec<String> {
    #[derive(PartialEq, Clone, Copy)]
    enum Class {
        Upper,
        Lower,
        Digit,
    }
    let class = |c: char| {
        if c.is_uppercase() {
            Some(Class::Upper)
        } else if c.is_numeric() {
            Some(Class::Digit)
        } else if c.is_whitespace() || c.is_ascii_punctuation() {
            None
        } else {
            Some(Class::Lower)
        }
    };
    let chars: Vec<char> = s.chars().collect();
    let mut out: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut previous = None;
    for (i, c) in chars.iter().enumerate() {
        let Some(now) = class(*c) else {
            if !word.is_empty() {
                out.push(std::mem::take(&mut word));
            }
            previous = None;
            continue;
        };
        let next = chars.get(i + 1).and_then(|c| class(*c));
        let starts = match (previous, now) {
            (Some(Class::Lower | Class::Digit), Class::Upper) => true,
            // The last capital of many belongs to the word that follows.
            (Some(Class::Upper), Class::Upper) => next == Some(Class::Lower),
            (Some(Class::Lower | Class::Upper), Class::Digit) => true,
            _ => false,
        };
        if starts && !word.is_empty() {
            out.push(std::mem::take(&mut word));
        }
        word.extend(c.to_lowercase());
        previous = Some(now);
    }
    if !word.is_empty() {
        out.push(word);
    }
    out
}

/// A name in camel case: underscores, spaces and hyphens go, the letter after them is a capital.
fn camel(s: &str) -> String {
    let separators: &[char] = &['_', '-', ' ', '\t', '\n'];
    let leading = &s[..s.len() - s.trim_start_matches(separators).len()];
    let mut out = leading.to_owned();
    for part in s[leading.len()..].split(separators).filter(|p| !p.is_empty()) {
        let mut chars = part.chars();
        if let Some(first) = chars.next() {
            out.extend(first.to_uppercase());
        }
        let rest = chars.as_str();
        // A part in capitals is one word.
        if rest.chars().any(char::is_lowercase) { out.push_str(rest) } else { out.push_str(&rest.to_lowercase()) }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_by_case_and_separators() {
        for (name, snake, camel_case) in [
            ("FirstName", "first_name", "FirstName"),
            ("HTTPServer", "http_server", "HTTPServer"),
            ("NoHTTPS", "no_https", "NoHTTPS"),
            ("GO_PATH", "go_path", "GoPath"),
            ("GO PATH", "go_path", "GoPath"),
            ("http2xx", "http_2xx", "Http2xx"),
            ("HTTP20xOK", "http_20x_ok", "HTTP20xOK"),
            ("some-words", "some_words", "SomeWords"),
        ] {
            assert_eq!(words(name).join("_"), snake);
            assert_eq!(camel(name), camel_case);
        }
    }
}

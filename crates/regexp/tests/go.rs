//! What Go's `regexp` package answers for patterns on which dialects differ.

use regexp::Regexp;

/// Patterns, and the error without its prefix.
const REFUSED: &[(&str, &str)] = &[
    (r"a(b", r"missing closing ): `a(b`"),
    (r"a)b", r"unexpected ): `a)b`"),
    (r"(?P<n>a", r"missing closing ): `(?P<n>a`"),
    (r"(?P<n", r"invalid named capture: `(?P<n`"),
    (r"(?P<>a)", r"invalid named capture: `(?P<>`"),
    (r"(?P<n-m>a)", r"invalid named capture: `(?P<n-m>`"),
    (r"(?<n", r"invalid named capture: `(?<n`"),
    (r"(?x)a", r"invalid or unsupported Perl syntax: `(?x`"),
    (r"(?=a)", r"invalid or unsupported Perl syntax: `(?=`"),
    (r"(?P=n)", r"invalid or unsupported Perl syntax: `(?P`"),
    (r"(?i", r"invalid or unsupported Perl syntax: `(?i`"),
    (r"(?", r"invalid or unsupported Perl syntax: `(?`"),
    (r"(?-)", r"invalid or unsupported Perl syntax: `(?-)`"),
    (r"(?i-)", r"invalid or unsupported Perl syntax: `(?i-)`"),
    (r"*", r"missing argument to repetition operator: `*`"),
    (r"a|*", r"missing argument to repetition operator: `*`"),
    (r"(+a)", r"missing argument to repetition operator: `+`"),
    (r"a**", r"invalid nested repetition operator: `**`"),
    (r"a*+", r"invalid nested repetition operator: `*+`"),
    (r"x{2}{3}", r"invalid nested repetition operator: `{2}{3}`"),
    (r"a{1001}", r"invalid repeat count: `{1001}`"),
    (r"a{2,1}", r"invalid repeat count: `{2,1}`"),
    (r"a{1,1001}", r"invalid repeat count: `{1,1001}`"),
    (r"(a{100}){20}", r"invalid repeat count: `{20}`"),
    (r"((a{10}){10}){11}", r"invalid repeat count: `{11}`"),
    (r"a{99999999999}", r"invalid repeat count: `{99999999999}`"),
    (r"[", r"missing closing ]: `[`"),
    (r"[a", r"missing closing ]: `[a`"),
    (r"[]", r"missing closing ]: `[]`"),
    (r"[^]", r"missing closing ]: `[^]`"),
    (r"[z-a]", r"invalid character class range: `z-a`"),
    (r"[a--b]", r"invalid character class range: `a--`"),
    (r"[a-\d]", r"invalid escape sequence: `\d`"),
    (r"[[:foo:]]", r"invalid character class range: `[:foo:]`"),
    (r"\p{Foo}", r"invalid character class range: `\p{Foo}`"),
    (r"\pX", r"invalid character class range: `\pX`"),
    (r"\p{", r"invalid character class range: `\p{`"),
    (r"\p", r"invalid character class range: `\p`"),
    (r"\y", r"invalid escape sequence: `\y`"),
    (r"\1", r"invalid escape sequence: `\1`"),
    (r"\8", r"invalid escape sequence: `\8`"),
    (r"\C", r"invalid escape sequence: `\C`"),
    (r"\Z", r"invalid escape sequence: `\Z`"),
    (r"\u00e9", r"invalid escape sequence: `\u`"),
    (r"\x", r"invalid escape sequence: `\x`"),
    (r"\x4", r"invalid escape sequence: `\x4`"),
    (r"\xg1", r"invalid escape sequence: `\xg1`"),
    (r"\x{110000}", r"invalid escape sequence: `\x{110000`"),
    (r"\x{}", r"invalid escape sequence: `\x{}`"),
    (r"\x{41", r"invalid escape sequence: `\x{41`"),
    (r"\", r"trailing backslash at end of expression: ``"),
    (r"a\Qb\E*\E", r"invalid escape sequence: `\E`"),
    (r"(?i)(?s", r"invalid or unsupported Perl syntax: `(?s`"),
    (r"\p{script=Greek}", r"invalid character class range: `\p{script=Greek}`"),
];

/// A pattern, a text, and all matches.
type Match = (&'static str, &'static str, &'static [(usize, usize)]);

const MATCHES: &[Match] = &[
    (r"\d+", "a12 ٣4", &[(1, 3), (6, 7)]),
    (r"\w+", "éa_1 ñ", &[(2, 5)]),
    (r"\bé", "é aé", &[(4, 6)]),
    (r"\Qa.b\E+", "a.bb a.b", &[(0, 4), (5, 8)]),
    (r"\123|\07", "S\u{7}", &[(0, 1), (1, 2)]),
    (r"a{,2}", "aa a{,2}", &[(3, 8)]),
    (r"{|a{|a{x", "{ a{ a{x", &[(0, 1), (2, 4), (5, 7)]),
    (r"[\d-z]+", "1-z", &[(0, 3)]),
    (r"\<a\>", "<a> a", &[(0, 3)]),
    (r"[a&&b]+", "a&b", &[(0, 3)]),
    (r"[a~~b]", "a~", &[(0, 1), (1, 2)]),
    (r"[[a]b]", "[b] ab]", &[(0, 3), (4, 7)]),
    (r"(?i)k", "kKK", &[(0, 1), (1, 2), (2, 3)]),
    (r"(?i)[^k]", "kKKx", &[(3, 4)]),
    (r"(?s).", "\n", &[(0, 1)]),
    (r".", "\n", &[]),
    (r"(?m)^a$", "b\na\nc", &[(2, 3)]),
    (r"a$", "a\n", &[]),
    (r"(?U)a+", "aaa", &[(0, 1), (1, 2), (2, 3)]),
    (r"(?U)a+?", "aaa", &[(0, 3)]),
    (r"a*", "baac", &[(0, 0), (1, 3), (4, 4)]),
    (r"(|a)*", "aa", &[(0, 0), (1, 1), (2, 2)]),
    (r"(a|ab)(c|bcd)", "abcd", &[(0, 4)]),
    (r"\pN+", "1٣a", &[(0, 3)]),
    (r"\p{Greek}+", "aΑβ", &[(1, 5)]),
    (r"\p{^Lu}", "Aa", &[(1, 2)]),
    (r"[[:^alpha:]]+", "a1é", &[(1, 4)]),
    (r"\B", "ab é", &[(1, 1), (3, 3), (5, 5)]),
    (r"(?i:a)b", "Ab aB", &[(0, 2)]),
    (r"é*", "éaéé", &[(0, 2), (3, 7)]),
    (r"(?i)\w+", "ſK", &[(0, 3)]),
    (r"[\x{D800}-\x{E000}]", "", &[(0, 3)]),
    (r"x{0}a", "xa", &[(1, 2)]),
    (r"", "aé", &[(0, 0), (1, 1), (3, 3)]),
];

#[test]
fn wrong_patterns_are_refused_in_gos_words() {
    for (pattern, error) in REFUSED {
        let found = Regexp::new(pattern).map(|_| ()).map_err(|e| e.to_string());
        assert_eq!(found, Err(format!("error parsing regexp: {error}")), "{pattern}");
    }
}

#[test]
fn patterns_match_what_they_match_in_go() {
    for (pattern, text, matches) in MATCHES {
        let regexp = Regexp::new(pattern).unwrap_or_else(|e| panic!("{pattern}: {e}"));
        let found: Vec<(usize, usize)> = regexp.find_iter(text).map(|m| (m.start, m.end)).collect();
        assert_eq!(found, *matches, "{pattern} in {text:?}");
        assert_eq!(regexp.is_match(text), !matches.is_empty(), "{pattern} in {text:?}");
        assert_eq!(regexp.find(text).map(|m| (m.start, m.end)), matches.first().copied(), "{pattern} in {text:?}");
    }
}

#[test]
fn deep_patterns_are_limited() {
    let nested = |n: usize| format!("{}a{}", "(".repeat(n), ")".repeat(n));
    assert!(Regexp::new(&nested(999)).is_ok());
    let error = Regexp::new(&nested(1000)).unwrap_err().to_string();
    assert!(error.starts_with("error parsing regexp: expression nests too deeply: `(((("), "{error}");
    let starred = |n: usize| format!("{}a{}", "(?:b".repeat(n), ")*".repeat(n));
    assert!(Regexp::new(&starred(400)).expect("400 levels").is_match("a"));
    assert!(Regexp::new(&starred(100_000)).is_err());
    assert!(Regexp::new(&"(".repeat(1_000_000)).is_err());
}

#[test]
fn large_patterns_are_limited() {
    let error = Regexp::new(&format!("(?:(?:a|{}){{1000}}){{1}}", "b.".repeat(4000))).unwrap_err().to_string();
    assert!(error.starts_with("error parsing regexp: expression too large: `"), "{:.80}", error);
    assert!(Regexp::new(&r"\pL".repeat(200_000)).is_err());
    assert!(Regexp::new("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?").is_ok());
    assert!(Regexp::new(r"\w{1000}").is_ok());
}

/// Parts of patterns, to make patterns that are nearly right.
const PARTS: [&str; 40] = [
    "a",
    "é",
    "K",
    ".",
    "*",
    "+?",
    "{2}",
    "{,2}",
    "{1001}",
    "{0}",
    "(",
    ")",
    "(?i)",
    "(?s:",
    "(?P<n>",
    "(?P<",
    "(?",
    "|",
    "^",
    "$",
    "[",
    "]",
    "[^",
    "[[:alpha:]]",
    "[:",
    "-",
    "\\d",
    "\\W",
    "\\b",
    "\\B",
    "\\Q",
    "\\E",
    "\\pL",
    "\\p{Greek}",
    "\\p{",
    "\\x{d800}",
    "\\x",
    "\\123",
    "\\",
    "&&",
];

proptest::proptest! {
    #[test]
    fn any_pattern_compiles_or_is_refused(
        parts in proptest::collection::vec(proptest::sample::select(&PARTS[..]), 0..12),
        text in ".{0,8}",
    ) {
        match Regexp::new(&parts.concat()) {
            Ok(regexp) => {
                let mut end = 0;
                for found in regexp.find_iter(&text) {
                    proptest::prop_assert!(found.start >= end && text.is_char_boundary(found.start) && text.get(found.clone()).is_some());
                    end = found.end;
                }
            }
            Err(error) => proptest::prop_assert!(error.to_string().starts_with("error parsing regexp: ")),
        }
    }
}

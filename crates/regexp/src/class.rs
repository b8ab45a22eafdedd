//! Classes of code points: Perl's, POSIX's and Unicode's, with Go's names.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

/// Unicode's general categories as Go names them.
const CATEGORIES: [&str; 36] = [
    "C", "Cc", "Cf", "Co", "Cs", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N", "Nd", "Nl", "No", "P",
    "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Z", "Zl", "Zp", "Zs",
];

/// Unicode 15's scripts as Go names them, in order.
const SCRIPTS: [&str; 163] = [
    "Adlam",
    "Ahom",
    "Anatolian_Hieroglyphs",
    "Arabic",
    "Armenian",
    "Avestan",
    "Balinese",
    "Bamum",
    "Bassa_Vah",
    "Batak",
    "Bengali",
    "Bhaiksuki",
    "Bopomofo",
    "Brahmi",
    "Braille",
    "Buginese",
    "Buhid",
    "Canadian_Aboriginal",
    "Carian",
    "Caucasian_Albanian",
    "Chakma",
    "Cham",
    "Cherokee",
    "Chorasmian",
    "Common",
    "Coptic",
    "Cuneiform",
    "Cypriot",
    "Cypro_Minoan",
    "Cyrillic",
    "Deseret",
    "Devanagari",
    "Dives_Akuru",
    "Dogra",
    "Duployan",
    "Egyptian_Hieroglyphs",
    "Elbasan",
    "Elymaic",
    "Ethiopic",
    "Georgian",
    "Glagolitic",
    "Gothic",
    "Grantha",
    "Greek",
    "Gujarati",
    "Gunjala_Gondi",
    "Gurmukhi",
    "Han",
    "Hangul",
    "Hanifi_Rohingya",
    "Hanunoo",
    "Hatran",
    "Hebrew",
    "Hiragana",
    "Imperial_Aramaic",
    "Inherited",
    "Inscriptional_Pahlavi",
    "Inscriptional_Parthian",
    "Javanese",
    "Kaithi",
    "Kannada",
    "Katakana",
    "Kawi",
    "Kayah_Li",
    "Kharoshthi",
    "Khitan_Small_Script",
    "Khmer",
    "Khojki",
    "Khudawadi",
    "Lao",
    "Latin",
    "Lepcha",
    "Limbu",
    "Linear_A",
    "Linear_B",
    "Lisu",
    "Lycian",
    "Lydian",
    "Mahajani",
    "Makasar",
    "Malayalam",
    "Mandaic",
    "Manichaean",
    "Marchen",
    "Masaram_Gondi",
    "Medefaidrin",
    "Meetei_Mayek",
    "Mende_Kikakui",
    "Meroitic_Cursive",
    "Meroitic_Hieroglyphs",
    "Miao",
    "Modi",
    "Mongolian",
    "Mro",
    "Multani",
    "Myanmar",
    "Nabataean",
    "Nag_Mundari",
    "Nandinagari",
    "New_Tai_Lue",
    "Newa",
    "Nko",
    "Nushu",
    "Nyiakeng_Puachue_Hmong",
    "Ogham",
    "Ol_Chiki",
    "Old_Hungarian",
    "Old_Italic",
    "Old_North_Arabian",
    "Old_Permic",
    "Old_Persian",
    "Old_Sogdian",
    "Old_South_Arabian",
    "Old_Turkic",
    "Old_Uyghur",
    "Oriya",
    "Osage",
    "Osmanya",
    "Pahawh_Hmong",
    "Palmyrene",
    "Pau_Cin_Hau",
    "Phags_Pa",
    "Phoenician",
    "Psalter_Pahlavi",
    "Rejang",
    "Runic",
    "Samaritan",
    "Saurashtra",
    "Sharada",
    "Shavian",
    "Siddham",
    "SignWriting",
    "Sinhala",
    "Sogdian",
    "Sora_Sompeng",
    "Soyombo",
    "Sundanese",
    "Syloti_Nagri",
    "Syriac",
    "Tagalog",
    "Tagbanwa",
    "Tai_Le",
    "Tai_Tham",
    "Tai_Viet",
    "Takri",
    "Tamil",
    "Tangsa",
    "Tangut",
    "Telugu",
    "Thaana",
    "Thai",
    "Tibetan",
    "Tifinagh",
    "Tirhuta",
    "Toto",
    "Ugaritic",
    "Vai",
    "Vithkuqi",
    "Wancho",
    "Warang_Citi",
    "Yezidi",
    "Yi",
    "Zanabazar_Square",
];

/// A class of some ranges.
pub(crate) fn ranges(ranges: &[(char, char)]) -> ClassUnicode {
    ClassUnicode::new(ranges.iter().map(|&(from, to)| ClassUnicodeRange::new(from, to)))
}

/// Adds what differs only in case.
pub(crate) fn fold(class: &mut ClassUnicode) {
    // Fails only without Unicode tables, which this crate always has.
    let _ = class.try_case_fold_simple();
}

/// The class `\d`, `\s` or `\w`, by its small letter.
pub(crate) fn perl(letter: u8) -> Option<ClassUnicode> {
    Some(match letter {
        b'd' => ranges(&[('0', '9')]),
        b's' => ranges(&[('\t', '\n'), ('\x0c', '\r'), (' ', ' ')]),
        b'w' => ranges(&[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')]),
        _ => return None,
    })
}

/// The class `[:name:]`.
pub(crate) fn posix(name: &str) -> Option<ClassUnicode> {
    Some(match name {
        "alnum" => ranges(&[('0', '9'), ('A', 'Z'), ('a', 'z')]),
        "alpha" => ranges(&[('A', 'Z'), ('a', 'z')]),
        "ascii" => ranges(&[('\0', '\x7f')]),
        "blank" => ranges(&[('\t', '\t'), (' ', ' ')]),
        "cntrl" => ranges(&[('\0', '\x1f'), ('\x7f', '\x7f')]),
        "digit" => ranges(&[('0', '9')]),
        "graph" => ranges(&[('!', '~')]),
        "lower" => ranges(&[('a', 'z')]),
        "print" => ranges(&[(' ', '~')]),
        "punct" => ranges(&[('!', '/'), (':', '@'), ('[', '`'), ('{', '~')]),
        "space" => ranges(&[('\t', '\r'), (' ', ' ')]),
        "upper" => ranges(&[('A', 'Z')]),
        "word" => return perl(b'w'),
        "xdigit" => ranges(&[('0', '9'), ('A', 'F'), ('a', 'f')]),
        _ => return None,
    })
}

/// The class `\p{name}`.
pub(crate) fn unicode(name: &str) -> Option<ClassUnicode> {
    match name {
        "" => None,
        "Any" => Some(ranges(&[('\0', char::MAX)])),
        // Surrogates do not occur in UTF-8.
        "Cs" => Some(ClassUnicode::empty()),
        // Go's C leaves out what is unassigned.
        "C" => {
            let mut class = table("gc=Cc")?;
            class.union(&table("gc=Cf")?);
            class.union(&table("gc=Co")?);
            Some(class)
        }
        _ if CATEGORIES.contains(&name) => table(&format!("gc={name}")),
        _ if SCRIPTS.binary_search(&name).is_ok() => table(&format!("sc={name}")),
        _ => None,
    }
}

fn table(query: &str) -> Option<ClassUnicode> {
    match regex_syntax::parse(&format!("\\p{{{query}}}")).ok()?.into_kind() {
        HirKind::Class(Class::Unicode(class)) => Some(class),
        // A class of one code point.
        HirKind::Literal(literal) => {
            let c = std::str::from_utf8(&literal.0).ok()?.chars().next()?;
            Some(ranges(&[(c, c)]))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_class() {
        for name in CATEGORIES.iter().chain(&SCRIPTS).filter(|name| !name.is_empty()) {
            assert!(unicode(name).is_some(), "{name}");
        }
        assert!(SCRIPTS.is_sorted());
        assert!(unicode("greek").is_none() && unicode("Letter").is_none());
    }
}

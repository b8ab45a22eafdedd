use super::*;

fn q(text: &str) -> Quantity {
    Quantity::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn texts_are_read_as_kubernetes_reads_them() {
    for (text, result) in [
        ("1", Ok(())),
        (".5", Ok(())),
        ("5.", Ok(())),
        ("-0", Ok(())),
        ("+1", Ok(())),
        ("1e-3", Ok(())),
        ("1E", Ok(())),
        ("9223372036854775808", Ok(())),
        ("", Err(ParseError::Format)),
        ("abc", Err(ParseError::Format)),
        ("1,5", Err(ParseError::Format)),
        ("0x10", Err(ParseError::Format)),
        ("1ei", Err(ParseError::Suffix)),
        ("1e3Gi", Err(ParseError::Format)),
        ("1gi", Err(ParseError::Format)),
        ("1Zi", Err(ParseError::Format)),
        ("1mm", Err(ParseError::Suffix)),
        ("1.2.3", Err(ParseError::Format)),
        // A suffix alone is zero where upstream holds an integer.
        ("Ti", Ok(())),
        ("k", Ok(())),
        ("Pi", Err(ParseError::Numeric)),
        ("0Pi", Ok(())),
        ("e-100", Err(ParseError::Numeric)),
    ] {
        assert_eq!(Quantity::parse(text).map(|_| ()), result, "{text}");
    }
}

#[test]
fn canonical_forms_use_the_largest_whole_suffix() {
    for (text, canonical) in [
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("0.1", "100m"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Gi", "512Mi"),
        ("1000k", "1M"),
        ("1e3", "1e3"),
        ("12000e3", "12e6"),
        ("1000", "1k"),
        ("1023Ki", "1023Ki"),
        ("0", "0"),
        ("-2Ki", "-2Ki"),
        ("0.0000000001", "1n"),
        ("0.0001Ki", "102400u"),
        ("100Ei", "9223372036854775807"),
        ("9223372036854775808", "9223372036854775808"),
    ] {
        assert_eq!(q(text).to_string(), canonical, "{text}");
    }
}

#[test]
fn arithmetic_and_order_ignore_how_amounts_are_held() {
    assert_eq!(q("0.1").add(&q("0.2")), q("0.3"));
    assert_eq!(q("1Gi").add(&q("1M")).as_i64(), Some(1_074_741_824));
    assert_eq!(q("1").sub(&q("1500m")).as_approximate_f64(), -0.5);
    assert_eq!(q("9223372036854775807").add(&Quantity::from_i64(1, Format::DecimalSi)).as_i64(), None);
    assert_eq!(q("1n").add(&q("1Ei")).as_approximate_f64(), 1.152921504606847e18);
    assert_eq!(q("50m").sub(&q("50m")).signum(), 0);
    assert!(q("1Gi") > q("1G"));
    assert!(q("-1") < q("0"));
    assert!(q("1e100000000") > q("1"));
    assert_eq!(q("1e100000000").add(&q("1")), q("1e100000000"));
    assert_eq!(q("1.0").as_i64(), None);
    assert_eq!(q("1Ei").as_i64(), None);
    assert_eq!(q("1001m").as_approximate_f64(), 1.0010000000000001);
}

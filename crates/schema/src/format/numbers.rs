//! Numbers with check digits.

/// The text without white space and dashes.
fn compact(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, ' ' | '\t' | '\n' | '\u{c}' | '\r' | '-')).collect()
}

fn digits(text: &str) -> impl Iterator<Item = u32> + '_ {
    text.bytes().map(|b| u32::from(b.wrapping_sub(b'0')))
}

pub(super) fn is_isbn10(text: &str) -> bool {
    let text = compact(text);
    let Some((body, last)) = text.split_at_checked(9) else { return false };
    if !body.bytes().all(|b| b.is_ascii_digit()) {
        return false;
    }
    let check = match last.as_bytes() {
        [b'X'] => 10,
        [b] if b.is_ascii_digit() => u32::from(b - b'0'),
        _ => return false,
    };
    let sum: u32 = digits(body).zip(1..).map(|(d, weight)| d * weight).sum();
    (sum + 10 * check).is_multiple_of(11)
}

pub(super) fn is_isbn13(text: &str) -> bool {
    let text = compact(text);
    text.len() == 13
        && text.bytes().all(|b| b.is_ascii_digit())
        && digits(&text).zip([1, 3].into_iter().cycle()).map(|(d, weight)| d * weight).sum::<u32>().is_multiple_of(10)
}

pub(super) fn is_credit_card(text: &str) -> bool {
    let text = compact(text);
    let known = regular!(
        r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|(222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11}|6[27][0-9]{14})$",
        &text
    );
    let sum: u32 = digits(&text)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .enumerate()
        .map(|(i, d)| if i % 2 == 0 { d } else { d * 2 / 10 + d * 2 % 10 })
        .sum();
    known && sum.is_multiple_of(10)
}

//! What Go's `mail.ParseAddress` takes: one address of RFC 5322, with or without a name before it.

/// Whether `text` is one address.
pub(super) fn is_address(text: &str) -> bool {
    let mut reader = Reader { rest: text };
    reader.mailbox().is_some() && reader.skip_cfws() && reader.rest.is_empty()
}

struct Reader<'t> {
    rest: &'t str,
}

impl Reader<'_> {
    fn mailbox(&mut self) -> Option<()> {
        self.skip_space();
        if self.rest.is_empty() {
            return None;
        }
        let start = self.rest;
        if self.addr_spec().is_some() {
            return Some(());
        }
        self.rest = start;
        if !self.rest.starts_with('<') {
            self.phrase()?;
        }
        self.skip_space();
        self.rest = self.rest.strip_prefix('<')?;
        self.addr_spec()?;
        self.rest = self.rest.strip_prefix('>')?;
        Some(())
    }

    fn addr_spec(&mut self) -> Option<()> {
        self.skip_space();
        if self.rest.starts_with('"') {
            self.quoted().filter(|text| !text.is_empty())?;
        } else {
            self.dot_atom()?;
        }
        self.rest = self.rest.strip_prefix('@')?;
        self.skip_space();
        if self.rest.is_empty() {
            return None;
        }
        if let Some(literal) = self.rest.strip_prefix('[') {
            let (address, rest) = literal.split_once(']')?;
            let address = address.strip_prefix("IPv6:").unwrap_or(address);
            super::net::parse_ip(address)?;
            self.rest = rest;
            return Some(());
        }
        self.dot_atom()
    }

    fn phrase(&mut self) -> Option<()> {
        let mut words = 0;
        loop {
            self.skip_space();
            let read = match self.rest.chars().next() {
                Some('"') => self.quoted().is_some(),
                Some(_) => self.atom(true).is_some(),
                None => false,
            };
            if !read {
                return (words > 0).then_some(());
            }
            words += 1;
        }
    }

    fn quoted(&mut self) -> Option<String> {
        let mut text = String::new();
        let mut chars = self.rest.strip_prefix('"')?.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.rest = &self.rest[at + 2..];
                    return Some(text);
                }
                '\\' => {
                    let (_, escaped) = chars.next()?;
                    if !is_visible(escaped) && escaped != ' ' && escaped != '\t' {
                        return None;
                    }
                    text.push(escaped);
                }
                c if is_visible(c) || c == ' ' || c == '\t' => text.push(c),
                _ => return None,
            }
        }
        None
    }

    fn dot_atom(&mut self) -> Option<()> {
        let atom = self.atom(true)?;
        (!atom.starts_with('.') && !atom.ends_with('.') && !atom.contains("..")).then_some(())
    }

    fn atom(&mut self, dots: bool) -> Option<&str> {
        let size = self.rest.find(|c| !(is_atext(c) || dots && c == '.')).unwrap_or(self.rest.len());
        if size == 0 {
            return None;
        }
        let (atom, rest) = self.rest.split_at(size);
        self.rest = rest;
        Some(atom)
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    /// Skips white space and one comment in parentheses; false where the comment does not end.
    fn skip_cfws(&mut self) -> bool {
        loop {
            self.skip_space();
            let Some(comment) = self.rest.strip_prefix('(') else { return true };
            let mut open = 1;
            let mut escaped = false;
            let end = comment.char_indices().find(|(_, c)| {
                if escaped {
                    escaped = false;
                } else {
                    match c {
                        '\\' => escaped = true,
                        '(' => open += 1,
                        ')' => open -= 1,
                        _ => {}
                    }
                }
                open == 0
            });
            let Some((at, _)) = end else { return false };
            self.rest = &comment[at + 1..];
        }
    }
}

fn is_atext(c: char) -> bool {
    is_visible(c) && !"()<>[]:;@\\,\".".contains(c)
}

fn is_visible(c: char) -> bool {
    matches!(c, '!'..='~') || !c.is_ascii()
}

//! The static token file: lines of `token,user,uid[,"group1,group2"]`.

use super::UserInfo;
use arc_swap::ArcSwap;
use std::collections::HashMap;

/// The users of a token file, by the SHA-256 of their token, so that looking one up does not compare secrets byte by byte.
#[derive(Default)]
pub struct StaticTokens(ArcSwap<Users>);

type Users = HashMap<[u8; 32], UserInfo>;

/// What is wrong with a token file, and where.
#[derive(Debug, thiserror::Error)]
#[error("{file}:{line}: {why}")]
pub struct TokenFileError {
    file: String,
    line: usize,
    why: String,
}

impl std::fmt::Debug for StaticTokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StaticTokens({})", self.0.load().len())
    }
}

impl StaticTokens {
    /// Reads the text of a token file; `file` names it in errors.
    pub fn parse(text: &str, file: &str) -> Result<Self, TokenFileError> {
        let mut users = HashMap::new();
        for (i, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let error = |why: String| TokenFileError { file: file.to_owned(), line: i + 1, why };
            let fields = columns(line).map_err(error)?;
            let [token, name, uid, rest @ ..] = &fields[..] else {
                let why = format!("expected token,user,uid and perhaps groups, found {} columns", fields.len());
                return Err(error(why));
            };
            if token.is_empty() {
                return Err(error("the token is empty".to_owned()));
            }
            let groups = rest.first().map(String::as_str).unwrap_or_default();
            let groups = groups.split(',').map(str::trim).filter(|g| !g.is_empty()).map(str::to_owned).collect();
            let user = UserInfo { name: name.clone(), uid: uid.clone(), groups, ..UserInfo::default() };
            users.insert(digest(token), user);
        }
        Ok(StaticTokens(ArcSwap::from_pointee(users)))
    }

    /// Takes the users of another file in place of these.
    pub fn replace(&self, other: StaticTokens) {
        self.0.store(other.0.into_inner());
    }

    /// The user with this token.
    pub fn find(&self, token: &str) -> Option<UserInfo> {
        self.0.load().get(&digest(token)).cloned()
    }
}

fn digest(token: &str) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(ring::digest::digest(&ring::digest::SHA256, token.as_bytes()).as_ref());
    out
}

/// The columns of a line of comma-separated values; a column in double quotes may hold commas and doubled quotes.
fn columns(line: &str) -> Result<Vec<String>, String> {
    let mut out = Vec::new();
    let mut chars = line.chars().peekable();
    loop {
        let mut column = String::new();
        while chars.next_if(|c| *c == ' ').is_some() {}
        if chars.next_if_eq(&'"').is_some() {
            loop {
                match chars.next() {
                    None => return Err("a double quote is not closed".to_owned()),
                    Some('"') if chars.next_if_eq(&'"').is_some() => column.push('"'),
                    Some('"') => break,
                    Some(c) => column.push(c),
                }
            }
        }
        while let Some(c) = chars.next_if(|c| *c != ',') {
            column.push(c);
        }
        out.push(column.trim_end().to_owned());
        if chars.next().is_none() {
            return Ok(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_told_with_file_and_line() {
        for (text, error) in [
            ("a,b\n", "t:1: expected token,user,uid and perhaps groups, found 2 columns"),
            ("a,b,c\n,x,y", "t:2: the token is empty"),
            ("a,b,c,\"d", "t:1: a double quote is not closed"),
        ] {
            assert_eq!(StaticTokens::parse(text, "t").unwrap_err().to_string(), error);
        }
    }

    #[test]
    fn quoted_groups_are_split() {
        let tokens = StaticTokens::parse("t,u,,\"a, b\"\n\n", "f").unwrap();
        assert_eq!(tokens.find("t").unwrap().groups, ["a", "b"]);
        assert_eq!(tokens.find("x"), None);
    }
}

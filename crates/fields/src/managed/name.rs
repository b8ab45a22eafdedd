//! Names of managers.

use object::go;

/// The most bytes a manager's name may have; `object::metadata` checks it where one is given.
pub const MAX_MANAGER_LENGTH: usize = 128;

/// The manager of a write: the `fieldManager` option, else what the user agent has before its first `/` without
/// characters that do not print, as far as it fits. An empty name is recorded as `unknown`.
pub fn manager_name(field_manager: &str, user_agent: &str) -> String {
    if !field_manager.is_empty() {
        return field_manager.to_owned();
    }
    let mut name = String::new();
    for c in user_agent.split('/').next().unwrap_or_default().chars().filter(|c| go::is_print(*c)) {
        if name.len() + c.len_utf8() > MAX_MANAGER_LENGTH {
            break;
        }
        name.push(c);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_wins_and_the_user_agent_is_cut() {
        assert_eq!(manager_name("me", "kubectl/v1"), "me");
        assert_eq!(manager_name("", "kubectl/v1.33 (linux)"), "kubectl");
        assert_eq!(manager_name("", "a\u{1}b c"), "ab c");
        assert_eq!(manager_name("", ""), "");
        assert_eq!(manager_name("", &"\u{fc}".repeat(100)).len(), 128);
        assert_eq!(manager_name("", &format!("x{}", "\u{fc}".repeat(100))).len(), 127);
    }
}

//! As whom an application's objects are written.

use object::Value;

use super::names;

/// Somebody in whose name the controller works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    user: String,
    groups: Vec<String>,
}

impl Actor {
    /// Whom the annotations of an application name: a service account of its namespace, or a user with groups. `None`
    /// leaves everything to the controller itself.
    pub fn of(application: &Value) -> Option<Self> {
        let given = |name: &str| application.annotation(name).filter(|value| !value.is_empty());
        let namespace = application.namespace();
        match (given(names::USERNAME), given(names::SERVICE_ACCOUNT)) {
            (Some(user), _) => {
                let groups = given(names::GROUP).unwrap_or_default().split(',').map(str::trim);
                let groups = groups.filter(|group| !group.is_empty()).map(str::to_owned).collect();
                Some(Actor { user: user.to_owned(), groups })
            }
            (None, Some(account)) => Some(Actor {
                user: format!("system:serviceaccount:{namespace}:{account}"),
                groups: vec![
                    "system:serviceaccounts".to_owned(),
                    format!("system:serviceaccounts:{namespace}"),
                    "system:authenticated".to_owned(),
                ],
            }),
            (None, None) => None,
        }
    }

    /// The name.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The groups.
    pub fn groups(&self) -> Vec<&str> {
        self.groups.iter().map(String::as_str).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn annotations_name_an_account_or_a_user() {
        for (annotations, user, groups) in [
            ("{}", None, ""),
            (
                r#"{"app.oam.dev/service-account-name":"deployer"}"#,
                Some("system:serviceaccount:n:deployer"),
                "system:serviceaccounts system:serviceaccounts:n system:authenticated",
            ),
            (
                r#"{"app.oam.dev/username":"bob","app.oam.dev/group":"dev, ops","app.oam.dev/service-account-name":"x"}"#,
                Some("bob"),
                "dev ops",
            ),
        ] {
            let text = format!(r#"{{"metadata":{{"namespace":"n","annotations":{annotations}}}}}"#);
            let actor = Actor::of(&json::parse(text.as_bytes()).unwrap_or_default());
            assert_eq!(actor.as_ref().map(Actor::user), user);
            assert_eq!(actor.map(|actor| actor.groups.join(" ")).unwrap_or_default(), groups);
        }
    }
}

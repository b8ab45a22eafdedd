//! An object of 10 KB and a schema with 20 rules that look at it.

/// The schema of [`spec`]: twenty fields, each with a rule.
pub fn schema() -> String {
    let fields: Vec<String> = (0..20)
        .map(|i| {
            format!(
                r#""field{i}":{{"type":"object","x-kubernetes-validations":[{{"rule":"self.count < 1000 && self.items.all(x, x.startsWith('item-'))"}}],"properties":{{"count":{{"type":"integer"}},"items":{{"type":"array","maxItems":50,"items":{{"type":"string","maxLength":50}}}}}}}}"#
            )
        })
        .collect();
    format!(r#"{{"type":"object","properties":{{{}}}}}"#, fields.join(","))
}

/// The object's spec; `salt` makes one differ from another.
pub fn spec(salt: usize) -> String {
    let field = |i: usize| {
        let items: Vec<String> = (0..20).map(|n| format!(r#""item-{i}-{n}-of-the-list""#)).collect();
        format!(r#""field{i}":{{"count":{},"items":[{}]}}"#, salt % 100, items.join(","))
    };
    let fields: Vec<String> = (0..20).map(field).collect();
    format!("{{{}}}", fields.join(","))
}

//! From the texts of rules to programs, with what they may cost.

use super::decl::{Decl, Types};
use super::explain::{Assumption, assumptions};
use super::{MAX_REQUEST, RULE_COST_LIMIT};
use crate::json_path;
use crate::structural::{Node, Rule};
use cel::check::check;
use cel::env::{Env, VariableDecl};
use cel::estimate::estimate;
use cel::interpret::Program;
use cel::library::ExpressionSet;
use cel::parse::{ParserOptions, parse};
use cel::types::Type;
use object::Value;
use std::collections::HashSet;
use std::sync::Arc;

/// The rules of one node, compiled.
pub(crate) type Compiled = Box<[CompiledRule]>;

/// A rule, compiled.
#[derive(Debug, Default)]
pub(crate) struct CompiledRule {
    /// None for a blank rule and for one that does not compile.
    pub(crate) program: Option<Program>,
    /// Why the rule does not compile.
    pub(crate) error: Option<String>,
    /// The most that one evaluation is estimated to cost.
    pub(crate) cost: u64,
    /// Whether the rule looks at the old value.
    pub(crate) uses_old: bool,
    /// The program that makes the message.
    pub(crate) message: Option<Program>,
    /// Why the message expression does not compile.
    pub(crate) message_error: Option<String>,
    /// The most that the message is estimated to cost.
    pub(crate) message_cost: u64,
    /// The sizes that the rule's cost assumes, where they were asked for.
    pub(crate) assumptions: Vec<Assumption>,
    /// The same for the message's.
    pub(crate) message_assumptions: Vec<Assumption>,
    /// The field that errors are about, relative to the node.
    pub(crate) field: Option<String>,
}

/// Expressions that are stored already. They may use all that the server knows, others what a server one version
/// older knows.
#[derive(Debug)]
pub(crate) enum Expressions {
    /// All of them: when rules run.
    All,
    /// These rules and message expressions, anywhere in a definition.
    These { rules: HashSet<String>, messages: HashSet<String> },
}

impl Expressions {
    /// Those of a definition.
    pub(crate) fn of(definition: Option<&Value>) -> Self {
        let (mut rules, mut messages) = (HashSet::new(), HashSet::new());
        let mut open: Vec<&Value> = definition.into_iter().collect();
        while let Some(value) = open.pop() {
            match value {
                Value::Object(members) => {
                    let found = members.get("x-kubernetes-validations").and_then(Value::as_array).unwrap_or_default();
                    for rule in found.iter().map(Rule::from_value) {
                        rules.insert(rule.rule.into());
                        messages.insert(rule.message_expression.into());
                    }
                    open.extend(members.values());
                }
                Value::Array(items) => open.extend(items),
                _ => {}
            }
        }
        Expressions::These { rules, messages }
    }

    fn env(&self, text: &str, message: bool) -> &'static Env {
        let stored = match self {
            Expressions::All => true,
            Expressions::These { messages, .. } if message => messages.contains(text),
            Expressions::These { rules, .. } => rules.contains(text),
        };
        Env::kubernetes(if stored { ExpressionSet::Stored } else { ExpressionSet::New })
    }
}

/// How often, at most, a node occurs in one object where nothing bounds it.
pub(crate) fn worst_cardinality(decl: &Decl) -> u64 {
    MAX_REQUEST / (decl.min_bytes + 1)
}

/// Compiles the rules of `node`, whose type is `decl`. With `explain`, how often the node can occur, it is also told
/// which sizes the costs assume.
pub(crate) fn compile(node: &Node, decl: &Arc<Decl>, stored: &Expressions, explain: Option<u64>) -> Compiled {
    let types = Arc::new(Types::new(decl));
    let compiler = Compiler { decl, types, stored, explain };
    node.rules()
        .iter()
        .map(|rule| {
            let mut compiled = compiler.rule(rule);
            if !rule.field_path.is_empty() {
                compiled.field = json_path::resolve(&rule.field_path, node, true).ok().map(|found| found.field);
            }
            compiled
        })
        .collect()
}

struct Compiler<'c> {
    decl: &'c Arc<Decl>,
    types: Arc<Types>,
    stored: &'c Expressions,
    explain: Option<u64>,
}

impl Compiler<'_> {
    fn rule(&self, rule: &Rule) -> CompiledRule {
        let mut out = CompiledRule::default();
        if rule.rule.trim().is_empty() {
            return out;
        }
        let optional = rule.optional_old_self == Some(true);
        let env = self.stored.env(&rule.rule, false);
        match self.program(env, &rule.rule, optional, Type::Bool) {
            Ok(made) => {
                out.uses_old = made.uses_old;
                out.cost = made.cost;
                out.assumptions = made.assumptions;
                out.program = Some(made.program);
            }
            Err(error) => {
                out.uses_old = error.uses_old;
                out.error = Some(match error.stage {
                    Stage::Compile => format!("compilation failed: {}", error.text),
                    Stage::Result => "cel expression must evaluate to a bool".to_owned(),
                    Stage::Program => format!("program instantiation failed: {}", error.text),
                });
                return out;
            }
        }
        if rule.message_expression.is_empty() {
            return out;
        }
        let env = self.stored.env(&rule.message_expression, true);
        match self.program(env, &rule.message_expression, optional, Type::String) {
            Ok(made) => {
                out.message_cost = made.cost;
                out.message_assumptions = made.assumptions;
                out.message = Some(made.program);
            }
            Err(error) => {
                out.message_error = Some(match error.stage {
                    Stage::Compile => format!("messageExpression compilation failed: {}", error.text),
                    Stage::Result => "messageExpression must evaluate to a string".to_owned(),
                    Stage::Program => format!("messageExpression instantiation failed: {}", error.text),
                });
            }
        }
        out
    }

    fn program(&self, env: &Env, text: &str, optional: bool, wanted: Type) -> Result<Made, Failure> {
        let own = self.types.root().clone();
        let old = if optional { Type::optional(own.clone()) } else { own.clone() };
        let env = env
            .with_provider(self.types.clone())
            .with_variables([VariableDecl::new("self", own), VariableDecl::new("oldSelf", old)]);
        let fail = |stage, text: String, uses_old| Failure { stage, text, uses_old };
        let ast = parse(text, &ParserOptions::default()).map_err(|e| fail(Stage::Compile, e.to_string(), false))?;
        let checked = check(&env, ast).map_err(|e| fail(Stage::Compile, e.to_string(), false))?;
        let fits = match &wanted {
            Type::Bool => matches!(checked.result_type(), Type::Bool),
            _ => matches!(checked.result_type(), Type::String),
        };
        if !fits {
            return Err(fail(Stage::Result, String::new(), false));
        }
        let uses_old = checked.mentions("oldSelf");
        let program = Program::new(&checked).map_err(|e| fail(Stage::Program, e.to_string(), uses_old))?;
        // The cost of a message is not multiplied.
        let times = if matches!(wanted, Type::String) { 1 } else { self.explain.unwrap_or(1) };
        let assumptions = match self.explain {
            Some(_) => assumptions(&checked, self.decl, RULE_COST_LIMIT / times.max(1)),
            None => Vec::new(),
        };
        Ok(Made { program, uses_old, cost: estimate(&checked, &**self.decl).max, assumptions })
    }
}

struct Made {
    program: Program,
    uses_old: bool,
    cost: u64,
    assumptions: Vec<Assumption>,
}

enum Stage {
    Compile,
    Result,
    Program,
}

struct Failure {
    stage: Stage,
    text: String,
    uses_old: bool,
}

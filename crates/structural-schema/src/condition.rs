//! Conditions in CEL on values that have no schema, such as the match conditions of a webhook.

use serde_json::Value;

use super::cel::{CelProgram, CelType, Fail, Meter, Val, compile_with, untyped};

/// An expression in CEL that is true or false. Its variables have no declared types.
///
/// ```
/// use kube_structural_schema::CelCondition;
/// use serde_json::json;
///
/// let condition = CelCondition::compile("object.metadata.name.startsWith('web-')", &["object"])?;
/// let pod = json!({"metadata": {"name": "web-1"}});
/// assert_eq!(condition.test(&[("object", &pod)]), Ok(true));
/// assert!(CelCondition::compile("object.", &["object"]).is_err());
/// # Ok::<(), kube_structural_schema::CelError>(())
/// ```
#[derive(Debug)]
pub struct CelCondition {
    program: CelProgram,
}

/// Why a condition cannot be compiled, or has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CelError {
    /// The expression is not valid: all errors, with their positions.
    #[error("compilation failed: {0}")]
    Invalid(String),
    /// The evaluation failed.
    #[error("{0}")]
    Failed(String),
    /// The evaluation costs more than is allowed for one expression.
    #[error("operation cancelled: actual cost limit exceeded")]
    TooExpensive,
}

impl CelCondition {
    /// Compiles an expression that may use these variables.
    ///
    /// # Errors
    ///
    /// The expression is not valid CEL, uses an unknown name, or its result is no boolean.
    pub fn compile(expression: &str, variables: &[&str]) -> Result<Self, CelError> {
        let names = variables.iter().map(|name| ((*name).to_owned(), CelType::Dyn)).collect();
        let compiled = compile_with(expression, names).map_err(CelError::Invalid)?;
        match compiled.result {
            CelType::Bool | CelType::Dyn => Ok(Self { program: compiled.program }),
            _ => Err(CelError::Invalid("must evaluate to bool".to_owned())),
        }
    }

    /// Returns whether the condition holds for these values of the variables.
    ///
    /// # Errors
    ///
    /// The evaluation failed, costs too much, or its result is no boolean.
    pub fn test(&self, variables: &[(&str, &Value)]) -> Result<bool, CelError> {
        let names = variables.iter().map(|(name, value)| (*name, Ok(untyped(value)))).collect();
        match self.program.run_with(names, &mut Meter::default()) {
            Ok(Val::Bool(holds)) => Ok(holds),
            Ok(_) => Err(CelError::Failed("must evaluate to bool".to_owned())),
            Err(Fail::Error(why)) => Err(CelError::Failed(why)),
            Err(Fail::Cost) => Err(CelError::TooExpensive),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn test(expression: &str) -> Result<bool, CelError> {
        let object = json!({"metadata": {"name": "a", "labels": {"app.example.com/x": "y"}}, "spec": {"replicas": 3, "half": 0.5}});
        let request = json!({"operation": "CREATE", "userInfo": {"groups": ["system:masters"]}});
        let values = [("object", &object), ("oldObject", &Value::Null), ("request", &request)];
        CelCondition::compile(expression, &["object", "oldObject", "request"])?.test(&values)
    }

    #[test]
    fn condition_reads_values_without_a_schema() {
        for holds in [
            "object.spec.replicas == 3 && object.spec.half < 1.0",
            "object.metadata.labels['app.example.com/x'] == 'y'",
            "has(object.metadata.labels) && !has(object.metadata.annotations)",
            "oldObject == null",
            "request.operation in ['CREATE', 'UPDATE']",
            "request.userInfo.groups.exists(group, group == 'system:masters')",
        ] {
            assert_eq!(test(holds), Ok(true), "{holds}");
        }
        assert_eq!(test("object.spec.replicas > 3"), Ok(false));
    }

    #[test]
    fn condition_without_a_result_is_an_error() {
        assert!(matches!(test("object.spec.missing == 1"), Err(CelError::Failed(why)) if why.contains("missing")));
        assert!(matches!(test("'text'"), Err(CelError::Invalid(_))));
        assert!(matches!(test("object.metadata.name"), Err(CelError::Failed(_))));
        assert!(matches!(test("nothing.at == 1"), Err(CelError::Invalid(why)) if why.contains("undeclared")));
    }
}

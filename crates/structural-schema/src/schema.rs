//! A structural schema: parsed, checked, and with compiled rules.

use serde_json::Value;

use super::cause::{self, FieldError};
use super::default::{self, TooLarge};
use super::node::SchemaNode;
use super::path::ValuePath;
use super::place::SchemaPlace;
use super::programs::Programs;
use super::read::SchemaDefinition;
use super::{check, defaults, patterns, prune, read, structural, validate};

/// The checked schema of one version of a custom resource, with its CEL rules compiled.
#[derive(Debug)]
pub struct StructuralSchema {
    root: SchemaNode,
    programs: Programs,
}

impl StructuralSchema {
    /// Reads and checks a schema, and compiles its rules.
    ///
    /// # Errors
    ///
    /// Every error in the schema, in the words of kube-apiserver.
    pub fn parse(definition: SchemaDefinition<'_>) -> Result<Self, Vec<FieldError>> {
        let path = ValuePath::Text(definition.path);
        let mut root = read::read(definition.schema, &path)?;
        patterns::compile_all(&mut root, &path)?;
        let mut problems = check::root(&root, definition, &path);
        let mut programs = Programs::default();
        if root.has_unreadable() {
            problems.append(&mut check::definition(&root, &path, false).all());
        } else {
            let mut shape = structural::check(&root, &path);
            let sound = shape.is_empty();
            problems.append(&mut shape);
            let mut found = check::definition(&root, &path, sound);
            programs = std::mem::take(&mut found.programs);
            if sound {
                let mut wrong = defaults::check(&root, &programs, &path);
                if !wrong.is_empty() {
                    found.rules.clear();
                }
                problems.append(&mut wrong);
            }
            problems.append(&mut found.all());
        }
        cause::bound(&mut problems);
        if !problems.is_empty() {
            return Err(problems);
        }
        defaults::prune_all(&mut root);
        Ok(Self { root, programs })
    }

    /// Removes unknown fields, and nulls where the schema allows none. Returns the paths of the unknown fields.
    ///
    /// `apiVersion`, `kind` and `metadata` stay, in the object and in embedded resources. Unknown fields of metadata are removed. A path reads
    /// `spec.list[0].name`; paths in metadata come first.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        prune::prune(&self.root, object)
    }

    /// Sets every default of the schema where the object has no value, or a null that the schema does not allow.
    ///
    /// # Errors
    ///
    /// [`TooLarge`] if nested defaults multiply beyond the size that an API server accepts. Some defaults are set then.
    pub fn apply_defaults(&self, object: &mut Value) -> Result<(), TooLarge> {
        default::default(&self.root, object)
    }

    /// Returns every error of an object. `old` is the stored object of an update: errors in unchanged values are not reported
    /// then.
    pub fn validate(&self, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
        validate::validate((&self.root, &self.programs), new, old)
    }

    /// Returns every error of an object whose status is updated.
    pub fn validate_status(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        validate::validate_status((&self.root, &self.programs), new, old)
    }

    /// Returns the place of the whole object, for field management.
    pub fn place(&self) -> SchemaPlace<'_> {
        SchemaPlace::of_resource(&self.root)
    }
}

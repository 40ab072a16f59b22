//! Limits of schemas and objects, so that none of them can exhaust the server's time or memory.

/// Levels of a schema.
pub(crate) const DEPTH: usize = 100;
/// Nested schemas: the largest CRDs in use have about twenty thousand.
pub(crate) const NODES: usize = 60_000;
/// Errors that are recorded before reading or checking stops.
pub(crate) const PROBLEMS: usize = 1_000;
/// Bytes of all errors of a schema, after which reading or checking stops.
pub(crate) const PROBLEM_BYTES: usize = 4 << 20;
/// Bytes of the path and of the message of an error. Longer ones are truncated.
pub(crate) const PATH_BYTES: usize = 64 << 10;
pub(crate) const SENTENCE_BYTES: usize = 256 << 10;
/// Bytes of all paths of unknown fields.
pub(crate) const UNKNOWN_BYTES: usize = 4 << 20;
/// Parts of all patterns of a schema. A repetition counts as often as it repeats.
pub(crate) const PATTERN_PARTS: usize = 400_000;
/// Bytes of one compiled pattern.
pub(crate) const PATTERN_BYTES: usize = 10 << 20;
/// Bytes of the cache of one pattern match.
pub(crate) const PATTERN_CACHE: usize = 1 << 20;
/// Schemas that are checked against values in one validation.
pub(crate) const STEPS: u64 = 20_000_000;
/// Approximate number of bytes that defaults may add to one object.
pub(crate) const DEFAULTS: usize = 32 << 20;
/// Cost of one run of a rule.
pub(crate) const RULE_COST: u64 = 1_000_000;
/// Cost of all rules on one object.
pub(crate) const OBJECT_COST: i64 = 10_000_000;
/// Bytes of the message of an expression.
pub(crate) const MESSAGE_BYTES: usize = 5 * 1024;
/// Bytes of one expression.
pub(crate) const EXPRESSION_BYTES: usize = 100_000;
/// Levels of one expression.
pub(crate) const EXPRESSION_DEPTH: usize = 100;

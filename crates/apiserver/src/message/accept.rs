//! Content negotiation: the form and format of an answer.

use crate::status::Status;
use crate::storage::object::Form;

/// The format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Format {
    #[default]
    Json,
    Yaml,
}

/// The kind of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerShape {
    Object,
    List,
    Watch,
    Discovery,
}

/// The negotiated form and format.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Agreed {
    pub(crate) form: Form,
    pub(crate) format: Format,
    /// Whether discovery is one document instead of one for each group.
    pub(crate) aggregated: bool,
    /// Whether the answer is a table.
    pub(crate) table: bool,
}

/// The result of an `Accept` header, computed once for each request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Negotiated {
    pub(crate) answer: Result<Agreed, Status>,
    /// The format of an error. An error can always be written, even if the answer cannot.
    pub(crate) refusal: Format,
}

/// Picks the first acceptable clause of an `Accept` header, by weight and then by order.
pub(crate) fn negotiate(accept: &str, shape: AnswerShape) -> Negotiated {
    let mut clauses: Vec<AcceptClause<'_>> =
        accept.split(',').map(str::trim).filter(|clause| !clause.is_empty()).map(AcceptClause::parse).collect();
    if clauses.is_empty() {
        return Negotiated { answer: Ok(Agreed::default()), refusal: Format::Json };
    }
    clauses.sort_by(|one, two| two.weight.total_cmp(&one.weight));
    let answer = clauses.iter().find_map(|clause| clause.meet(shape)).ok_or_else(|| {
        let known = match shape {
            AnswerShape::Watch => "application/json;stream=watch",
            _ => "application/json, application/yaml",
        };
        Status::failure(406, "NotAcceptable", format!("only the following media types are accepted: {known}"))
    });
    let refusal = clauses.iter().find_map(|clause| clause.format(AnswerShape::Object)).unwrap_or_default();
    Negotiated { answer, refusal }
}

/// One clause of an `Accept` header.
struct AcceptClause<'a> {
    media_type: &'a str,
    /// The kind to which the client wants the answer converted.
    target: Option<&'a str>,
    group: Option<&'a str>,
    version: Option<&'a str>,
    weight: f32,
}

impl<'a> AcceptClause<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default();
        let mut clause = Self { media_type, target: None, group: None, version: None, weight: 1.0 };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match name {
                "as" => clause.target = Some(value),
                "g" => clause.group = Some(value),
                "v" => clause.version = Some(value),
                "q" => clause.weight = value.parse().unwrap_or(0.0),
                _ => {}
            }
        }
        clause
    }

    fn format(&self, shape: AnswerShape) -> Option<Format> {
        match self.media_type {
            "application/json" | "application/*" | "*/*" => Some(Format::Json),
            "application/yaml" if shape != AnswerShape::Watch => Some(Format::Yaml),
            _ => None,
        }
    }

    fn meet(&self, shape: AnswerShape) -> Option<Agreed> {
        let format = self.format(shape)?;
        let of = |group, version| self.group == Some(group) && self.version == Some(version);
        let plain = Agreed { format, ..Agreed::default() };
        match (self.target, shape) {
            (None, _) => Some(plain),
            (Some("PartialObjectMetadata"), AnswerShape::Object | AnswerShape::Watch)
            | (Some("PartialObjectMetadataList"), AnswerShape::List)
                if of("meta.k8s.io", "v1") =>
            {
                Some(Agreed { form: Form::Metadata, ..plain })
            }
            (Some("Table"), AnswerShape::Object | AnswerShape::List | AnswerShape::Watch)
                if of("meta.k8s.io", "v1") && format == Format::Json =>
            {
                Some(Agreed { table: true, ..plain })
            }
            (Some("APIGroupDiscoveryList"), AnswerShape::Discovery) if of("apidiscovery.k8s.io", "v2") => {
                Some(Agreed { aggregated: true, ..plain })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

    fn check(accept: &str, shape: AnswerShape, expected: Option<(Form, Format)>) {
        let found = negotiate(accept, shape).answer.ok().map(|agreed| (agreed.form, agreed.format));
        assert_eq!(found, expected, "{accept}");
    }

    #[test]
    fn first_acceptable_clause_wins() {
        let json = || Some((Form::Full, Format::Json));
        check("", AnswerShape::Object, json());
        check("*/*", AnswerShape::Watch, json());
        check("application/vnd.kubernetes.protobuf,application/json", AnswerShape::Object, json());
        check("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", AnswerShape::List, json());
        check("application/json;q=0.5, application/yaml", AnswerShape::Object, Some((Form::Full, Format::Yaml)));
        check("application/yaml", AnswerShape::Watch, None);
        check("text/html", AnswerShape::Object, None);
        check("application/cbor", AnswerShape::Object, None);
        check(METADATA, AnswerShape::Object, Some((Form::Metadata, Format::Json)));
        check(METADATA, AnswerShape::Watch, Some((Form::Metadata, Format::Json)));
        check(METADATA, AnswerShape::List, None);
        check(METADATA_LIST, AnswerShape::List, Some((Form::Metadata, Format::Json)));
        check(METADATA_LIST, AnswerShape::Object, None);
        check(&format!("{METADATA_LIST};q=0.1,application/json;stream=watch"), AnswerShape::List, json());
    }
}

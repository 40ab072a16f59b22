//! Places of custom resources.

use crate::kinds::schema::TypePlace;
use kube_field_manager::{FieldSchema as _, Member, Scalar, Shape};
use kube_structural_schema::{SchemaDefinition, StructuralSchema};
use serde_json::json;

fn member<'s>(of: TypePlace<'s>, name: &str) -> Option<TypePlace<'s>> {
    of.member(name).map(|member| match member {
        Member::Field(place) | Member::Entry(place) => place,
    })
}

#[test]
fn places_have_the_shapes_of_their_schema() {
    let spec = json!({"type": "object", "properties": {
        "plain": {"type": "array", "items": {"type": "string"}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "map": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "l"],
            "items": {"type": "object", "required": ["k"], "properties": {
                "k": {"type": "string"}, "l": {"type": "string", "default": "x"},
            }},
        },
        "atomic": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "string"}}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "port": {"x-kubernetes-int-or-string": true},
    }});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let definition = SchemaDefinition { schema: &schema, path: "schema", status_subresource: false };
    let schema = StructuralSchema::parse(definition).expect("it is a structural schema");
    let root = TypePlace::Custom(schema.place());
    let spec = member(root, "spec").expect("it is there");
    let shape = |name: &str| member(spec, name).map(TypePlace::shape);
    assert_eq!(root.shape(), Shape::Map);
    assert_eq!(member(root, "metadata").and_then(|of| member(of, "labels")).map(TypePlace::shape), Some(Shape::Map));
    assert_eq!(shape("plain"), Some(Shape::AtomicList));
    assert_eq!(shape("set"), Some(Shape::SetList));
    assert_eq!(shape("map"), Some(Shape::MapList));
    assert_eq!(shape("atomic"), Some(Shape::AtomicMap));
    assert_eq!(shape("free"), Some(Shape::Deduced));
    assert_eq!(shape("labels"), Some(Shape::Map));
    assert_eq!(shape("port"), Some(Shape::Scalar(Scalar::Any)));
    assert_eq!(shape("missing"), None);
    assert!(matches!(spec.member("map"), Some(Member::Field(_))));
    assert!(matches!(member(spec, "labels").and_then(|of| of.member("x")), Some(Member::Entry(_))));
    let map = member(spec, "map").expect("it is there");
    assert_eq!(map.keys().collect::<Vec<_>>(), ["k", "l"]);
    assert_eq!((map.key_default("k"), map.key_default("l")), (None, Some(json!("x"))));
    assert_eq!(map.items().shape(), Shape::Map);
}

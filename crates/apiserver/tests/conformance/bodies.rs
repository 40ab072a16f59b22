//! How request bodies are read: duplicate fields, numbers and the scale of an object.

use super::cluster::{Answer, Case, case};
use super::writers::{deployment, deployments};
use serde_json::{Value, json};

const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const OPERATIONS: &str = "application/json-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const YAML: &str = "application/yaml";

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case(124, |cluster| async move {
            cluster.make("a").await;
            let path = cluster.config_map("a");
            let patch = async |media_type: &str, query: &str, body: &str| {
                let headers = [("content-type", media_type)];
                cluster.send("PATCH", &format!("{path}?{query}"), &headers, body.into()).await
            };
            let twice = r#"{"data":{"a":"b","a":"c"}}"#;
            for media_type in [MERGE, STRATEGIC] {
                let refused = patch(media_type, "fieldValidation=Strict", twice).await;
                refused.is(422, "Invalid");
                let said = "strict decoding error: duplicate field \\\"data.a\\\"";
                assert!(refused.text.contains(said), "{}", refused.text);
                let warned = patch(media_type, "fieldValidation=Warn", twice).await;
                assert_eq!((warned.code, warned.at("/data/a")), (200, json!("c")), "{}", warned.text);
                assert!(warnings(&warned).contains("duplicate field \\\"data.a\\\""), "{:?}", warned.headers);
                let ignored = patch(media_type, "fieldValidation=Ignore", twice).await;
                assert_eq!((ignored.code, warnings(&ignored).as_str()), (200, ""));
            }
            let twice = r#"[{"op":"add","path":"/data/a","value":"x","value":"y"}]"#;
            let refused = patch(OPERATIONS, "fieldValidation=Strict", twice).await;
            refused.is(422, "Invalid");
            let said = "strict decoding error: json patch duplicate field \\\"[0].value\\\"";
            assert!(refused.text.contains(said), "{}", refused.text);
        }),
        case(125, |cluster| async move {
            let path = cluster.config_map("a");
            let apply = async |query: &str, body: &str| {
                let path = format!("{path}?fieldManager=m&force=true&{query}");
                cluster.send("PATCH", &path, &[("content-type", APPLY)], body.into()).await
            };
            let twice = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: x, a: z}\n";
            let refused = apply("fieldValidation=Strict", twice).await;
            refused.is(400, "BadRequest");
            assert!(refused.text.contains("error strict decoding patch: "), "{}", refused.text);
            let ignored = apply("fieldValidation=Ignore", twice).await;
            assert_eq!((ignored.code, warnings(&ignored).as_str()), (201, ""), "{}", ignored.text);
            assert_eq!(ignored.at("/data/a"), "z");
            let warned = apply("", twice).await;
            assert_eq!((warned.code, warnings(&warned).is_empty()), (200, false), "{}", warned.text);
            let post = async |name: &str, query: &str| {
                let body = format!("metadata: {{name: {name}}}\ndata: {{a: x, a: z}}\n");
                let path = format!("{}?{query}", cluster.config_maps());
                cluster.send("POST", &path, &[("content-type", YAML)], body.into()).await
            };
            post("b", "fieldValidation=Strict").await.is(400, "BadRequest");
            assert_eq!(post("b", "fieldValidation=Ignore").await.at("/data/a"), "z");
            assert_eq!(post("c", "").await.code, 201);
        }),
        case(127, |cluster| async move {
            cluster.post(&deployments(&cluster), &deployment("d")).await;
            let path = format!("{}/d/scale", deployments(&cluster));
            let put = async |change: fn(&mut Value), query: &str| {
                let mut scale = cluster.get(&path).await.json();
                change(&mut scale);
                cluster.put(&format!("{path}?{query}"), &scale).await
            };
            put(|scale| scale["metadata"]["name"] = json!("e"), "").await.is(400, "BadRequest");
            let other = put(|scale| scale["metadata"]["uid"] = json!("zzz"), "").await;
            other.is(409, "Conflict");
            assert!(other.text.contains("Precondition failed: UID in precondition: zzz"), "{}", other.text);
            let kind = |scale: &mut Value| {
                scale["kind"] = json!("Deployment");
                scale["apiVersion"] = json!("apps/v1");
            };
            put(kind, "").await.is(400, "BadRequest");
            let unknown = |scale: &mut Value| scale["spec"]["replica"] = json!(2);
            let refused = put(unknown, "fieldValidation=Strict").await;
            refused.is(400, "BadRequest");
            assert!(refused.text.contains("unknown field \\\"spec.replica\\\""), "{}", refused.text);
            assert_eq!(put(unknown, "fieldValidation=Ignore").await.code, 200);
            let patch = json!({"spec": {"replica": 2}});
            cluster.merge(&format!("{path}?fieldValidation=Strict"), &patch).await.is(422, "Invalid");
            let table = cluster.get_as(&path, "application/json;as=Table;v=v1;g=meta.k8s.io").await;
            let columns = table.at("/columnDefinitions");
            let names: Vec<&str> =
                columns.as_array().unwrap().iter().filter_map(|column| column["name"].as_str()).collect();
            assert_eq!(names, ["Name", "Desired", "Available", "Age"]);
        }),
        case(128, |cluster| async move {
            let mut object = deployment("d");
            object["spec"]["replicas"] = json!(1);
            cluster.post(&deployments(&cluster), &object).await;
            let path = format!("{}/d/scale", deployments(&cluster));
            let apply = async |query: &str, replicas: i64| {
                let body = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"},
                    "spec": {"replicas": replicas}});
                cluster.write("PATCH", &format!("{path}?{query}"), APPLY, &body).await
            };
            apply("", 4).await.is(422, "Invalid");
            let refused = apply("fieldManager=m", 4).await;
            refused.is(409, "Conflict");
            assert!(refused.text.contains(".spec.replicas"), "{}", refused.text);
            let forced = apply("fieldManager=m&force=true", 4).await;
            assert_eq!((forced.code, forced.at("/kind"), forced.at("/spec/replicas")), (200, json!("Scale"), json!(4)));
            let entries = cluster.get(&format!("{}/d", deployments(&cluster))).await.at("/metadata/managedFields");
            let entries = entries.as_array().unwrap();
            let owns = |entry: &&Value| entry["fieldsV1"]["f:spec"]["f:replicas"].is_object();
            let owners: Vec<&Value> = entries.iter().filter(owns).collect();
            assert_eq!(owners.len(), 1, "{entries:?}");
            let owner = owners[0];
            assert_eq!(
                (&owner["manager"], &owner["operation"], &owner["apiVersion"], &owner["subresource"]),
                (&json!("m"), &json!("Apply"), &json!("apps/v1"), &json!("scale"))
            );
            assert_eq!(apply("fieldManager=m", 5).await.at("/spec/replicas"), 5);
            let wrong = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}});
            let path = format!("{path}?fieldManager=m");
            assert_eq!(cluster.write("PATCH", &path, APPLY, &wrong).await.code, 400);
        }),
        case(129, |cluster| async move {
            // A null field and a reset field are no change, although no stored object has them.
            let mut nothing = deployment("a");
            nothing["metadata"]["labels"] = Value::Null;
            let mut reset = deployment("b");
            reset["status"] = json!({"replicas": 3});
            let versions = async || {
                let mut versions = Vec::new();
                for object in [&nothing, &reset] {
                    let name = object["metadata"]["name"].as_str().unwrap();
                    let path = format!("{}/{name}?fieldManager=m", deployments(&cluster));
                    let answer = cluster.write("PATCH", &path, APPLY, object).await;
                    assert!(matches!(answer.code, 200 | 201), "{}", answer.text);
                    versions.push(answer.at("/metadata/resourceVersion"));
                }
                versions
            };
            let before = versions().await;
            // Longer than a second: the times of managed fields have whole seconds, so a new time would be a change.
            tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
            assert_eq!(versions().await, before);
        }),
    ]
}

fn warnings(answer: &Answer) -> String {
    let texts = answer.headers.get_all("warning").iter().map(|text| text.to_str().unwrap().to_owned());
    texts.collect::<Vec<_>>().join(" ")
}

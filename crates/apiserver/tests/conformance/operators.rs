//! What operators' tests rely on: CRDs of popular projects, reviews, approvals, debug containers, stored kinds.

use super::cluster::{Case, Cluster, case};
use super::writers::{DEFINITIONS, definition, gear, gears, make_gear, until};
use serde_json::{Value, json};

/// A certificate signing request in PEM and base64.
const REQUEST: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIY01JR0RBZ0VBTUNFeERqQU1CZ05WQkFNTUJYSnZZbTkwTVE4d0RRWURWUVFLREFaeWIySnZkSE13V1RBVApCZ2NxaGtqT1BRSUJCZ2dxaGtqT1BRTUJCd05DQUFTOENXVVVDQnd5M0NlcHpFa0UyekI2ZW9pNU13dEJEU29UCi9Qdk0yUUVrL2RhNkRmTnN3Wm8rK1Q0Mi8xOTdMUGh0VC9zdXdXL092cXB2bVdzQmhqUkJvQUF3Q2dZSUtvWkkKemowRUF3SURTQUF3UlFJaEFPTVh4L0V1RGZoakEwbGp5dTFucDREQ04wcUQzQ0R5Wnk2MUhOeXR0RklMQWlCdgpmS0orTGozQXRkT0xtTlNDbWx2aThyQzJhSzl3NXlsditQbjJSNFVJYkE9PQotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K";

const TOKEN_REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case(137, |cluster| async move {
            let mut dashed = definition(&cluster, &[("v1", true, true)]);
            let name = json!({"type": "string", "pattern": "^[0-9a-zA-Z-.]+$"});
            let spec = json!({"type": "object", "properties": {"name": name, "teeth": {"type": "integer"}}});
            let schema = json!({"type": "object", "properties": {"spec": spec}});
            dashed["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema;
            let created = cluster.post(DEFINITIONS, &dashed).await;
            assert_eq!(created.code, 201, "{}", created.text);
            make_gear(&cluster, "v1").await;
            for (number, name, code) in [(1, "a-b.c", 201), (2, "a_b", 422)] {
                let mut object = gear(&cluster, "v1");
                object["metadata"]["name"] = json!(format!("g{number}"));
                object["spec"]["name"] = json!(name);
                let made = cluster.post(&gears(&cluster, "v1"), &object).await;
                assert_eq!(made.code, code, "{}", made.text);
            }
        }),
        case(138, |cluster| async move {
            let mut two = definition(&cluster, &[("v1", true, true), ("v2", true, false)]);
            for (number, fields) in [
                (0, json!({"teeth": {"type": "integer"}, "shape": {"type": "string", "default": "round"}})),
                (1, json!({"teeth": {"type": "integer"}, "weight": {"type": "integer"}})),
            ] {
                let spec = json!({"type": "object", "properties": fields});
                two["spec"]["versions"][number]["schema"]["openAPIV3Schema"] =
                    json!({"type": "object", "properties": {"spec": spec}});
            }
            let created = cluster.post(DEFINITIONS, &two).await;
            assert_eq!(created.code, 201, "{}", created.text);
            make_gear(&cluster, "v1").await;
            until(&cluster, &gears(&cluster, "v2"), |answer| answer.code == 200).await;
            let mut heavy = gear(&cluster, "v2");
            heavy["metadata"]["name"] = json!("heavy");
            heavy["spec"]["weight"] = json!(9);
            let made = cluster.post(&gears(&cluster, "v2"), &heavy).await;
            assert_eq!((made.code, made.at("/spec")), (201, json!({"teeth": 8})), "{}", made.text);
            let path = |version: &str| format!("{}/heavy", gears(&cluster, version));
            assert_eq!(cluster.get(&path("v1")).await.at("/spec"), json!({"teeth": 8, "shape": "round"}));
            assert_eq!(cluster.get(&path("v2")).await.at("/spec"), json!({"teeth": 8}));
        }),
        case(139, |cluster| async move {
            let accounts = format!("/api/v1/namespaces/{}/serviceaccounts", cluster.namespace);
            let account = cluster.post(&accounts, &json!({"metadata": {"name": "robot"}})).await;
            let ask = json!({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": {"audiences": ["vault", "api"]}});
            let token = cluster.post(&format!("{accounts}/robot/token"), &ask).await.at("/status/token");
            let review = async |token: &Value, audiences: &[&str]| {
                let body = json!({"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1",
                    "spec": {"token": token, "audiences": audiences}});
                let answer = cluster.post(TOKEN_REVIEWS, &body).await;
                assert_eq!(answer.code, 201, "{}", answer.text);
                answer
            };
            let known = review(&token, &["api", "other"]).await;
            assert_eq!(
                (known.at("/status/authenticated"), known.at("/status/audiences")),
                (json!(true), json!(["api"]))
            );
            let user = format!("system:serviceaccount:{}:robot", cluster.namespace);
            assert_eq!(known.at("/status/user/username"), user);
            assert_eq!(known.at("/status/user/uid"), account.at("/metadata/uid"));
            let groups = format!("system:serviceaccounts:{}", cluster.namespace);
            assert_eq!(
                known.at("/status/user/groups"),
                json!(["system:serviceaccounts", groups, "system:authenticated"])
            );
            for (token, audience) in [(&token, "other"), (&json!("unknown"), "api")] {
                let unknown = review(token, &[audience]).await;
                assert_eq!((unknown.at("/status/authenticated"), unknown.at("/status/user")), (Value::Null, json!({})));
            }
            let empty = json!({"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": {"token": ""}});
            cluster.post(TOKEN_REVIEWS, &empty).await.is(400, "BadRequest");
        }),
        case(140, |cluster| async move {
            const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
            let path = format!("{REQUESTS}/{}", cluster.namespace);
            let spec = json!({"request": REQUEST, "signerName": "example.com/signer", "usages": ["client auth"], "username": "mallory"});
            let body = json!({"kind": "CertificateSigningRequest", "apiVersion": "certificates.k8s.io/v1",
                "metadata": {"name": cluster.namespace}, "spec": spec});
            let created = cluster.post(REQUESTS, &body).await;
            assert_eq!((created.code, created.at("/status")), (201, json!({})), "{}", created.text);
            assert_ne!(created.at("/spec/username"), "mallory");
            let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": "Test"});
            let conditions = |kinds: &[&str]| json!({"status": {"conditions": kinds.iter().map(|kind| condition(kind)).collect::<Vec<_>>()}});
            cluster.merge(&format!("{path}/status"), &conditions(&["Approved"])).await.is(422, "Invalid");
            let approved = cluster.merge(&format!("{path}/approval"), &conditions(&["Approved"])).await;
            assert_eq!(
                (approved.code, approved.at("/status/conditions/0/type")),
                (200, json!("Approved")),
                "{}",
                approved.text
            );
            assert!(approved.at("/status/conditions/0/lastUpdateTime").is_string());
            cluster.merge(&format!("{path}/approval"), &conditions(&[])).await.is(422, "Invalid");
            cluster.merge(&format!("{path}/approval"), &conditions(&["Approved", "Denied"])).await.is(422, "Invalid");
            assert_eq!(cluster.get(&format!("{path}/approval")).await.at("/status/conditions/0/status"), "True");
            cluster.delete(&path).await;
        }),
        case(141, |cluster| async move {
            let containers = json!([{"name": "c", "image": "i"}]);
            let pod = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}, "spec": {"containers": containers}});
            assert_eq!(cluster.post(&cluster.pods(), &pod).await.code, 201);
            let path = format!("{}/p/ephemeralcontainers", cluster.pods());
            let debug = |image: &str| json!({"spec": {"nodeName": "n", "ephemeralContainers": [{"name": "debug", "image": image}]}});
            let strategic = "application/strategic-merge-patch+json";
            let added = cluster.write("PATCH", &path, strategic, &debug("busybox")).await;
            assert_eq!(added.code, 200, "{}", added.text);
            assert_eq!(added.at("/spec/ephemeralContainers/0/image"), "busybox");
            assert_eq!((added.at("/spec/nodeName"), added.at("/metadata/generation")), (Value::Null, json!(2)));
            cluster.write("PATCH", &path, strategic, &debug("alpine")).await.is(422, "Invalid");
            assert_eq!(cluster.get(&path).await.at("/spec/ephemeralContainers/0/name"), "debug");
        }),
        case(126, |cluster| async move {
            stored(&cluster).await;
        }),
    ]
}

/// Creates an object of each kind that is only stored, and checks its defaults.
async fn stored(cluster: &Cluster) {
    let check = async |path: &str, version: &str, kind: &str, spec: Value, pointer: &str, value: Value| {
        let mut object = json!({"kind": kind, "apiVersion": version, "metadata": {"name": cluster.namespace}});
        object.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let path = format!("/apis/{version}/{path}");
        let created = cluster.post(&path, &object).await;
        assert_eq!(created.code, 201, "{kind}: {}", created.text);
        assert_eq!(created.json().pointer(pointer), Some(&value), "{kind}: {}", created.text);
        assert_eq!(cluster.delete(&format!("{path}/{}", cluster.namespace)).await.code, 200, "{kind}");
    };
    let admission = "admissionregistration.k8s.io/v1";
    let rule = json!({"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"]});
    let selected = json!({"matchLabels": {"held-by": "nothing"}});
    let matched = json!({"resourceRules": [rule], "objectSelector": selected});
    let spec = json!({"matchConstraints": matched, "validations": [{"expression": "true"}]});
    let policy = json!({"spec": spec});
    check(
        "validatingadmissionpolicies",
        admission,
        "ValidatingAdmissionPolicy",
        policy,
        "/spec/failurePolicy",
        json!("Fail"),
    )
    .await;
    let binding = json!({"spec": {"policyName": "none", "validationActions": ["Deny"]}});
    check(
        "validatingadmissionpolicybindings",
        admission,
        "ValidatingAdmissionPolicyBinding",
        binding,
        "/metadata/generation",
        json!(1),
    )
    .await;
    let class = json!({"handler": "runsc"});
    check("runtimeclasses", "node.k8s.io/v1", "RuntimeClass", class, "/handler", json!("runsc")).await;
}

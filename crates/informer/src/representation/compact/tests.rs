use k8s_openapi::api::core::v1::{Pod, Secret};
use serde_json::{Value, json};

use super::*;
use crate::representation::Types;

fn pod(number: usize) -> Value {
    let digest = |salt: u64| {
        let mixed = (number as u64 + salt * 1_000_003).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        format!("{mixed:016x}{:016x}", mixed.rotate_left(29))
    };
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("shop-{number}"), "namespace": format!("team-{}", number % 7), "uid": digest(1),
            "resourceVersion": (1000 + number).to_string(), "generation": 3,
            "labels": {"app": format!("app-{}", number % 20), "tier": "backend"},
            "annotations": {"checksum": digest(2), "kubectl.kubernetes.io/last-applied-configuration": "{}"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("rs-{}", number % 20),
                "uid": format!("u-{}", number % 20), "controller": true}],
            "managedFields": [{"manager": "kubelet", "fieldsV1": {"f:status": {"f:phase": {}}}}],
        },
        "spec": {"nodeName": format!("node-{}", number % 50), "containers": [{
            "name": "main", "image": format!("registry.example.com/shop@sha256:{}", digest(3)),
            "env": (0..10).map(|at| json!({"name": format!("SETTING_{at}"), "value": format!("http://b-{at}/")})).collect::<Vec<_>>(),
        }]},
        "status": {"phase": "Running", "podIP": format!("10.0.{}.{}", number / 256, number % 256), "hostIP": "10.1.1.1"},
    })
}

fn compact<K: StaticResource>(decoder: &CompactDecoder<K>, object: &Value) -> Compact<K> {
    let json = serde_json::to_vec(object).unwrap();
    let resource = K::resource_type();
    let types = Types::new(resource.api_version(), resource.kind);
    let raw = Raw::read(&json, ManagedFields::Skip, Some(&types), String::new()).unwrap();
    <Compact<K> as Decode>::decode(decoder, &raw).unwrap()
}

fn decoder<K: StaticResource>() -> CompactDecoder<K> {
    Compact::<K>::decoder(&K::resource_type())
}

fn figure<K: StaticResource>(decoder: &CompactDecoder<K>, name: &str) -> f64 {
    Compact::<K>::figures(decoder).into_iter().find(|(known, _)| *known == name).unwrap().1
}

#[test]
fn objects_are_unchanged_before_and_after_a_dictionary_is_trained() {
    let decoder = decoder::<Pod>();
    let pods: Vec<_> = (0..400).map(|number| compact(&decoder, &pod(number))).collect();
    for (number, compact) in pods.iter().enumerate() {
        let mut expected = pod(number);
        expected["metadata"].as_object_mut().unwrap().remove("managedFields");
        assert_eq!(serde_json::from_slice::<Value>(&compact.json()).unwrap(), expected);
        assert_eq!(compact.to_json(), Some(expected.clone()));
        assert_eq!(*compact.decode().unwrap(), serde_json::from_value::<Pod>(expected).unwrap());
    }
    assert_eq!(figure(&decoder, "compact_dictionaries"), 1.0);
    let (first, last) = (pods[0].stored_bytes(), pods[399].stored_bytes());
    assert!(last * 3 < first, "{first} bytes became {last}");
}

#[test]
fn metadata_equals_that_of_a_view() {
    let (decoder, object) = (decoder::<Pod>(), pod(7));
    let compact = compact(&decoder, &object);
    let json = serde_json::to_vec(&object).unwrap();
    let view: super::super::View<serde::de::IgnoredAny> = Decode::decode(&(), &Raw::new(&json).unwrap()).unwrap();
    assert_eq!(compact.id(), view.id());
    assert_eq!((compact.id().key.to_string(), compact.id().version), ("team-0/shop-7".to_owned(), "1007"));
    for name in ["app", "tier", "team", "checksum", ""] {
        assert_eq!(compact.label(name), view.label(name), "{name}");
        assert_eq!(compact.annotation(name), view.annotation(name), "{name}");
    }
    let owners = |object: &dyn Object| {
        let mut owners = Vec::new();
        object.each_owner(&mut |owner| owners.push(format!("{owner:?}")));
        owners
    };
    assert_eq!(owners(&compact), owners(&view));
    assert_eq!((compact.generation(), compact.is_being_deleted()), (Some(3), false));
}

#[test]
fn the_value_of_an_annotation_may_be_any_string() {
    let mut object = pod(1);
    let texts = ["a\0b", "", "\0", "12:colon", "\u{1F600}"];
    for (number, text) in texts.iter().enumerate() {
        object["metadata"]["annotations"][format!("text-{number}")] = json!(text);
    }
    let compact = compact(&decoder::<Pod>(), &object);
    for (number, text) in texts.iter().enumerate() {
        assert_eq!(compact.annotation(&format!("text-{number}")), Some(*text));
    }
    assert_eq!(compact.annotation("checksum"), object["metadata"]["annotations"]["checksum"].as_str());
    assert_eq!((compact.annotation("text-5"), compact.annotation("")), (None, None));
    assert_eq!((compact.id().version, compact.label("tier")), ("1001", Some("backend")));
}

#[test]
fn shared_values_are_stored_once_and_removed_when_unused() {
    let decoder = decoder::<Pod>();
    let pods: Vec<_> = (0..100).map(|number| compact(&decoder, &pod(number))).collect();
    assert_eq!((figure(&decoder, "label_sets"), figure(&decoder, "owner_sets")), (20.0, 20.0));
    drop(pods);
    for number in 0..10_000 {
        let object = json!({"metadata": {"name": "a", "labels": {"l": number.to_string()}}});
        drop(compact(&decoder, &object));
    }
    assert!(figure(&decoder, "label_sets") <= 4096.0 + 1.0);
}

#[test]
fn only_the_last_applied_annotation_is_dropped_and_not_a_label_of_that_name() {
    let last_applied = json!({"kubectl.kubernetes.io/last-applied-configuration": "x"});
    let object = json!({"metadata": {"name": "a", "labels": last_applied, "annotations": last_applied}});
    let pod = compact(&decoder::<Pod>(), &object);
    let key = "kubectl.kubernetes.io/last-applied-configuration";
    assert_eq!((pod.label(key), pod.annotation(key)), (Some("x"), None));
}

#[test]
fn a_selector_evaluated_once_per_label_set_finds_the_same_objects() {
    let (decoder, (store, mut writer)) = (decoder::<Pod>(), crate::Store::new(0));
    (0..200).for_each(|number| _ = writer.put(Arc::new(compact(&decoder, &pod(number)))));
    let lister = crate::Lister::new(store.clone());
    for text in ["app=app-3", "app in (app-3, app-4)", "app!=app-3", "nothing", "!nothing", ""] {
        let selector: crate::Selector = text.parse().unwrap();
        let one_by_one = store.iter().filter(|pod| selector.matches(&**pod)).count();
        assert_eq!(lister.list(&selector).len(), one_by_one, "{text}");
        let in_one = |pod: &Arc<Compact<Pod>>| pod.id().key.namespace() == Some("team-3") && selector.matches(&**pod);
        assert_eq!(lister.namespace("team-3").list(&selector).len(), store.iter().filter(in_one).count(), "{text}");
    }
}

#[test]
fn a_field_is_read_by_its_pointer() {
    let (decoder, mut object) = (decoder::<Pod>(), pod(7));
    object["metadata"]["labels"]["a/b~c"] = json!("odd");
    let compact = compact(&decoder, &object);
    assert_eq!(compact.get::<String>("/spec/nodeName").unwrap().as_deref(), Some("node-7"));
    assert_eq!(compact.get::<String>("/spec/containers/0/env/3/name").unwrap().as_deref(), Some("SETTING_3"));
    assert_eq!(compact.get::<String>("/metadata/labels/a~1b~0c").unwrap().as_deref(), Some("odd"));
    assert_eq!(compact.get::<Value>("").unwrap(), compact.to_json());
    for nothing in ["/spec/nothing", "/spec/containers/1", "/spec/containers/x", "/spec/nodeName/deeper", "/kind/0"] {
        assert_eq!(compact.get::<Value>(nothing).unwrap(), None, "{nothing}");
    }
    let error = compact.get::<u32>("/spec/nodeName").unwrap_err();
    assert!(!error.to_string().contains("node-7"), "no value is quoted: {error}");
}

#[test]
fn secrets_are_stored_uncompressed() {
    let decoder = decoder::<Secret>();
    for number in 0..300 {
        let secret = json!({"metadata": {"name": format!("s{number}")}, "data": {"password": "aHVudGVyMg=="}});
        let compact = compact(&decoder, &secret);
        assert_eq!(compact.stored_bytes(), compact.json().len());
    }
    assert_eq!(figure(&decoder, "compact_dictionaries"), 0.0);
}

#[test]
fn recently_decoded_objects_are_reused_and_their_memory_is_bounded() {
    let decoder = decoder::<Pod>();
    let pods: Vec<_> = (0..5000).map(|number| compact(&decoder, &pod(number))).collect();
    let first = pods[0].decode().unwrap();
    assert!(Arc::ptr_eq(&first, &pods[0].decode().unwrap()) && Arc::ptr_eq(&first, &pods[0].clone().decode().unwrap()));
    assert_eq!((figure(&decoder, "decoded_hits"), figure(&decoder, "decoded_misses")), (2.0, 1.0));
    for pod in &pods {
        pod.decode().unwrap();
    }
    assert!(!Arc::ptr_eq(&first, &pods[0].decode().unwrap()), "others were asked for since");
}

#[test]
fn an_undecodable_object_is_an_error_when_it_is_read_or_validated() {
    let decoder = decoder::<Pod>();
    let odd = || compact(&decoder, &json!({"metadata": {"name": "a"}, "spec": {"containers": "hunter2"}}));
    assert_eq!(odd().id().key.name(), "a");
    assert_eq!(odd().get::<String>("/spec/containers").unwrap().as_deref(), Some("hunter2"));
    for error in [odd().decode().map(drop).unwrap_err(), odd().validate().map(drop).unwrap_err()] {
        assert!(matches!(&error, DecodeError::Shape(said) if !said.contains("hunter2")), "{error}");
    }
    assert!(compact(&decoder, &pod(1)).validate().is_ok());
}

#[test]
fn objects_of_a_new_shape_get_a_new_dictionary() {
    let decoder = decoder::<Pod>();
    for number in 0..3000 {
        compact(&decoder, &pod(number));
    }
    let other = |number: u64| {
        let texts: Vec<_> =
            (0..40_u64).map(|at| format!("{:x}", (number * 40 + at).wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
        json!({"metadata": {"name": format!("o{number}"), "annotations": {"texts": texts.join(" ")}}})
    };
    let kept: Vec<_> = (0..6000).map(|number| compact(&decoder, &other(number))).collect();
    assert_eq!(figure(&decoder, "compact_dictionaries"), 2.0);
    assert!(kept.iter().all(|compact| compact.get::<String>("/metadata/name").unwrap().is_some()), "each by its own");
}

/// Makes strings of one of two vocabularies. Each compresses well with its own dictionary, and badly with the other
/// one.
fn words(vocabulary: u64, number: u64) -> Vec<u8> {
    let mix =
        |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let words = (0..20).map(|at| format!("{:016x}", mix(vocabulary * 1_000 + mix(number * 20 + at) % 100)));
    words.collect::<Vec<_>>().join(" ").into_bytes()
}

#[test]
fn objects_of_two_shapes_in_turn_train_at_most_eight_dictionaries() {
    let training = dictionary::Training::default();
    let mut after_turns = Vec::new();
    for turn in 0..11 {
        // Two windows to detect the other vocabulary, the samples, and one window with the new dictionary.
        for number in 0..6_300 {
            let json = words(turn % 2, number);
            let Some((packed, dictionary)) = training.compress(&json) else { continue };
            if number % 900 == 0 {
                let mut unpacked = Vec::with_capacity(json.len());
                assert!(dictionary::decompress(&packed, &dictionary, &mut unpacked));
                assert_eq!(unpacked, json);
            }
        }
        after_turns.push(training.generations());
    }
    assert_eq!(after_turns, [1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 8], "one each turn, up to eight");
}

//! CEL rules of custom resources.

use kube_embedded_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::ask::{Ask, MERGE};
use crate::choices::Choices;
use crate::things::{THING, THINGS, define, in_time, thing, version_of};

/// The depth of generated expressions.
const LEVELS: usize = 6;

/// Any text as a rule, and its second line as the message expression: the server refuses the CRD, or validates objects
/// with the rule, within the time limit and always with the same result.
///
/// A first byte that no text has means that each other byte is a word of the language, or a choice in its grammar.
pub fn rules(input: &[u8]) {
    let text = match input.split_first() {
        Some((0xff, words)) => words.iter().map(|word| WORDS[usize::from(*word) % WORDS.len()]).collect(),
        Some((0xfe, choices)) => {
            let mut choices = Choices::new(choices);
            let (rule, message) = (expression('b', &mut choices, LEVELS), expression('s', &mut choices, LEVELS));
            format!("{rule}\n{message}")
        }
        _ => String::from_utf8_lossy(input).into_owned(),
    };
    let (rule, message) = text.split_once('\n').unwrap_or((&text, ""));
    in_time(|| {
        let server = ApiServer::builder().seed(1).build();
        crate::run(async {
            if define(&server, ruled(rule, message)).await {
                judge(&server).await;
            }
        });
    });
}

/// Returns an expression of this type; at the deepest level one without subexpressions.
fn expression(kind: char, choices: &mut Choices<'_>, levels: usize) -> String {
    let forms = GRAMMAR.iter().find(|(known, _)| *known == kind).map_or(&[][..], |(_, forms)| forms);
    let plain = forms.iter().take_while(|form| !form.contains('~')).count();
    let form = choices.pick(if levels == 0 { &forms[..plain] } else { forms });
    let mut parts = form.split('~');
    let mut made = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut rest = part.chars();
        made.extend(rest.next().map(|kind| expression(kind, choices, levels - 1)));
        made.push_str(rest.as_str());
    }
    made
}

/// Returns a version with a rule for values of every type.
fn ruled(rule: &str, message: &str) -> Value {
    let mut validation = json!({"rule": rule});
    if !message.is_empty() {
        validation["messageExpression"] = message.into();
    }
    let spec = json!({"type": "object", "x-kubernetes-validations": [validation], "properties": {
        "text": {"type": "string"}, "number": {"type": "integer"}, "double": {"type": "number"}, "truth": {"type": "boolean"},
        "texts": {"type": "array", "items": {"type": "string"}},
        "numbers": {"type": "array", "items": {"type": "integer"}},
        "map": {"type": "object", "additionalProperties": {"type": "integer"}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "items": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}}},
        "time": {"type": "string", "format": "date-time"}, "day": {"type": "string", "format": "date"},
        "span": {"type": "string", "format": "duration"}, "bytes": {"type": "string", "format": "byte"},
        "either": {"x-kubernetes-int-or-string": true}, "nothing": {"type": "string", "nullable": true},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "inner": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"a": {"type": "string"}}},
    }});
    version_of(json!({"type": "object", "properties": {"spec": spec}}))
}

/// Validates objects with a rule: alone, updated without a change, and updated to another. Equal objects have equal
/// results.
async fn judge(server: &ApiServer) {
    let objects = specs().map(|spec| thing(json!({"spec": spec})));
    for (number, object) in objects.iter().enumerate() {
        let tried = Ask::json("POST", &format!("{THINGS}?dryRun=All"), object).send(server).await;
        let created = Ask::json("POST", THINGS, object).send(server).await;
        assert!(matches!(created.code, 201 | 422), "{object}: {created:?}");
        assert_eq!(created.code, tried.code, "the result differs: {object}");
        if created.code == 422 {
            continue;
        }
        for next in [object, &objects[(number + 1) % objects.len()]] {
            let changed = Ask { content_type: MERGE, ..Ask::json("PATCH", THING, next) }.send(server).await;
            assert!(matches!(changed.code, 200 | 422), "{next} in place of {object}: {changed:?}");
        }
        assert_eq!(Ask::json("DELETE", THING, &json!({})).send(server).await.code, 200);
    }
}

/// Returns four specs: empty, with every field, with extreme values, and large.
fn specs() -> [Value; 4] {
    [
        json!({}),
        json!({"text": "b", "number": -1, "double": 0.5, "truth": true, "texts": ["a", "é"], "numbers": [2, 1],
            "map": {"a": 1}, "set": ["x"], "items": [{"k": "a", "v": 1}, {"k": "b"}], "time": "2026-01-01T00:00:00Z",
            "day": "2026-01-01", "span": "1h2m", "bytes": "AAE=", "either": "1", "nothing": null, "free": {"a": [1, null]},
            "inner": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "i"}, "a": "x"}}),
        json!({"text": "", "number": i64::MIN, "double": -1e300, "truth": false, "texts": [], "numbers": [i64::MAX, i64::MIN],
            "map": {}, "set": [], "items": [], "time": "0001-01-01T00:00:00Z", "span": "-1ns", "bytes": "", "either": i64::MAX,
            "free": {}}),
        json!({"text": "x".repeat(5_000), "numbers": (0..500).collect::<Vec<i64>>(),
            "texts": (0..100).map(|number| format!("t{number}")).collect::<Vec<_>>()}),
    ]
}

/// Forms of expressions by type of their result. `~` and a letter stand for a subexpression; forms without one come
/// first.
#[rustfmt::skip]
const GRAMMAR: &[(char, &[&str])] = &[
    ('b', &[
        "true", "self.truth", "has(self.text)", "has(self.items)", "(self == oldSelf)", "(self.either == 1)", "(dyn(self.either) == '1')",
        "(~b && ~b)", "(~b || ~b)", "!~b", "(~b ? ~b : ~b)", "(~i < ~i)", "(~i == ~i)", "(~i >= ~d)", "(~d != ~d)", "(~s == ~s)",
        "(~s <= ~s)", "(~s in ~S)", "(~i in ~N)", "(~s in self.map)", "~s.contains(~s)", "~s.matches(~s)", "~s.startsWith(~s)",
        "~s.endsWith(~s)", "~S.all(x, ~b)", "~S.exists(x, x == ~s)", "~N.exists(x, x > ~i)", "~N.exists_one(x, x == ~i)",
        "~N.all(x, ~N.all(y, x + y > ~i))", "~S.isSorted()", "~N.isSorted()", "sets.contains(~S, ~S)", "sets.equivalent(~N, ~N)",
        "sets.intersects(~S, ~S)", "~q.isGreaterThan(~q)", "~q.isLessThan(~q)", "~q.isInteger()", "isQuantity(~s)", "isURL(~s)", "isIP(~s)",
        "ip.isCanonical(~s)", "isCIDR(~s)", "~c.containsIP(~s)", "~c.containsIP(~a)", "~c.containsCIDR(~c)", "~a.isLoopback()",
        "~a.isGlobalUnicast()", "~a.isUnspecified()", "~a.isLinkLocalMulticast()", "~o.hasValue()", "(~t > ~t)", "(~p == ~p)", "(~y < ~y)",
        "format.named(~s).hasValue()", "~f.validate(~s).hasValue()", "self.items.all(e, e.k == ~s)", "self.items.exists(e, e.v > ~i)",
        "self.map.all(k, v, v > ~i)", "self.map.all(k, k == ~s)", "(type(~i) == int)", "bool(~s)", "(~S == ~S)", "(dyn(~s) == dyn(~i))",
        "(~l == ~l)", "(~u == ~u)", "(self.free == dyn(~S))", "~S.exists(i, x, ~b)",
    ]),
    ('i', &[
        "0", "1", "-1", "9223372036854775807", "self.number", "(~i + ~i)", "(~i - ~i)", "(~i * ~i)", "(~i / ~i)", "(~i % ~i)", "-(~i)",
        "size(~s)", "~S.size()", "self.map.size()", "~N.sum()", "~N.max()", "~N.min()", "~N[~i]", "int(~s)", "int(~d)", "int(~t)", "int(~p)",
        "int(~u)", "~s.indexOf(~s)", "~s.indexOf(~s, ~i)", "~s.lastIndexOf(~s, ~i)", "~S.indexOf(~s)", "~N.lastIndexOf(~i)",
        "~t.getFullYear()", "~t.getMonth()", "~t.getDayOfYear()", "~t.getDate(~z)", "~t.getHours(~z)", "~t.getDayOfWeek()", "~p.getMinutes()",
        "~p.getMilliseconds()", "~q.asInteger()", "sign(~q)", "~q.compareTo(~q)", "~c.prefixLength()", "~a.family()", "self.map[~s]",
        "(~b ? ~i : ~i)", "self.items[~i].v", "~y.size()", "~l[~i][~i].size()", "self.?map[?~s].orValue(~i)",
    ]),
    ('u', &["0u", "18446744073709551615u", "uint(~i)", "uint(~s)", "(~u + ~u)", "(~u - ~u)", "(~u * ~u)", "(~u % ~u)"]),
    ('d', &[
        "0.5", "-1e300", "self.double", "double(~i)", "double(~s)", "(~d + ~d)", "(~d - ~d)", "(~d * ~d)", "(~d / ~d)", "-(~d)",
        "~q.asApproximateFloat()", "[~d, ~d].max()",
    ]),
    ('s', &[
        "''", "'a'", "'é'", "self.text", "'(a|b)*'", "'500m'", "'10.0.0.1'", "'10.0.0.0/8'", "'https://a:1/b?c=d'", "'1h'",
        "'2026-01-01T00:00:00Z'", "'%s %d'", "'%x %b'", "'%.3f %e'", "'123'", "self.nothing", "self.inner.metadata.name", "(~s + ~s)",
        "~s.substring(~i)", "~s.substring(~i, ~i)", "~s.replace(~s, ~s)", "~s.replace(~s, ~s, ~i)", "~s.charAt(~i)", "~s.lowerAscii()",
        "~s.upperAscii()", "~s.trim()", "~S.join()", "~S.join(~s)", "~S[~i]", "string(~i)", "string(~d)", "string(~t)", "string(~p)",
        "string(~y)", "string(~u)", "~s.format([~s, ~i])", "~s.format([~S, ~d])", "~s.format([~i, ~u])", "~s.format([~y, ~b])",
        "strings.quote(~s)", "~s.find(~s)", "~o.orValue(~s)", "url(~s).getHost()", "url(~s).getEscapedPath()", "url(~s).getPort()",
        "string(~a)", "string(~c)", "(~b ? ~s : ~s)", "self.items[~i].k", "~S.min()", "dyn(~s)", "~o.value()",
    ]),
    ('S', &[
        "['a', 'b']", "self.texts", "self.set", "~s.split(~s)", "~s.split(~s, ~i)", "~S.map(x, ~s)", "~S.map(x, ~b, x + ~s)",
        "~S.filter(x, ~b)", "~S.sort()", "~S.distinct()", "~S.reverse()", "~S.slice(~i, ~i)", "(~S + ~S)", "~s.findAll(~s)",
        "~s.findAll(~s, ~i)", "[~s, ~s]", "[?~o]", "self.items.map(e, e.k)", "~S.sortBy(x, x.size())", "~N.map(x, ~s)", "~l.flatten()",
        "~S.transformList(k, x, ~s)", "url(~s).getQuery()[~s]",
    ]),
    ('N', &[
        "[1, 2]", "self.numbers", "~N.map(x, x + ~i)", "~N.map(x, ~i)", "~N.filter(x, x > ~i)", "lists.range(~i)", "~N.sort()", "(~N + ~N)",
        "~N.slice(~i, ~i)", "~N.distinct()", "[~i, ~i]", "~N.reverse()", "[~N, ~N].flatten()", "self.items.map(e, e.?v.orValue(~i))",
        "~N.sortBy(x, -x)",
    ]),
    ('l', &["[['a'], []]", "[~S, ~S]", "~S.map(x, ~S)", "(~l + ~l)"]),
    ('t', &["timestamp('2026-01-01T00:00:00Z')", "self.time", "self.day", "timestamp(~s)", "timestamp(~i)", "(~t + ~p)", "(~t - ~p)"]),
    ('p', &["duration('1h')", "self.span", "duration(~s)", "duration(~i)", "(~p + ~p)", "(~p - ~p)", "(~t - ~t)", "[~p].sum()"]),
    ('q', &["quantity('1Gi')", "quantity('-1.5')", "quantity(~s)", "~q.add(~q)", "~q.add(~i)", "~q.sub(~q)", "~q.sub(~i)"]),
    ('c', &["cidr('10.0.0.0/8')", "cidr('::/0')", "cidr(~s)", "~c.masked()"]),
    ('a', &["ip('::1')", "ip('10.0.0.1')", "ip(~s)", "~c.ip()"]),
    ('o', &[
        "self.?text", "optional.none()", "optional.of(~s)", "optional.ofNonZeroValue(~s)", "~o.or(~o)", "~o.optMap(x, x + ~s)",
        "~o.optFlatMap(x, ~o)", "~S[?~i]", "self.?texts[?~i]",
    ]),
    ('y', &["b'a'", "self.bytes", "bytes(~s)", "(~y + ~y)"]),
    ('z', &["'UTC'", "'Europe/Berlin'", "'+02:00'", "~s"]),
    ('f', &[
        "format.dns1123Label()", "format.dns1123Subdomain()", "format.uri()", "format.datetime()", "format.uuid()", "format.byte()",
        "format.qualifiedName()", "format.labelValue()", "format.named(~s).value()",
    ]),
];

/// Words of expressions.
#[rustfmt::skip]
const WORDS: &[&str] = &[
    "self",
    ".",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "?",
    " == ",
    " != ",
    " < ",
    " <= ",
    " > ",
    " >= ",
    " && ",
    " || ",
    "!",
    " + ",
    " - ",
    " * ",
    " / ",
    " % ",
    " in ",
    "-",
    "self.text",
    "self.number",
    "self.double",
    "self.truth",
    "self.texts",
    "self.numbers",
    "self.map",
    "self.set",
    "self.items",
    "self.time",
    "self.day",
    "self.span",
    "self.bytes",
    "self.either",
    "self.nothing",
    "self.free",
    "self.inner",
    "oldSelf",
    "x",
    "y",
    "k",
    "true",
    "false",
    "null",
    "0",
    "1",
    "2u",
    "0.5",
    "1e300",
    "-1",
    "9223372036854775807",
    "'a'",
    "'é'",
    "''",
    "'%s'",
    "b'a'",
    "r'\\d'",
    "'1h'",
    "'2026-01-01T00:00:00Z'",
    "'10.0.0.0/8'",
    "'10.0.0.1'",
    "'500m'",
    "'https://a:1/b?c=d'",
    "'(a|b)*'",
    "'%d %s %f %x'",
    "has(self.text)",
    "has(self.free.a)",
    ".all(x, ",
    ".exists(x, ",
    ".exists_one(x, ",
    ".map(x, ",
    ".filter(x, ",
    ".transformList(k, x, ",
    ".transformMap(k, x, ",
    ".sortBy(x, ",
    ".optMap(x, ",
    ".optFlatMap(x, ",
    "size(",
    ".size()",
    "type(",
    "dyn(",
    "bool(",
    "int(",
    "uint(",
    "double(",
    "string(",
    "bytes(",
    "duration(",
    "timestamp(",
    ".getFullYear()",
    ".getHours('Europe/Berlin')",
    ".getSeconds()",
    ".getMilliseconds()",
    ".getDayOfYear()",
    ".contains(",
    ".startsWith(",
    ".matches(",
    ".charAt(",
    ".indexOf(",
    ".lastIndexOf(",
    ".lowerAscii()",
    ".replace(",
    ".split(",
    ".substring(",
    ".trim()",
    ".join(",
    ".format([",
    "strings.quote(",
    ".find(",
    ".findAll(",
    ".isSorted()",
    ".sum()",
    ".min()",
    ".max()",
    ".slice(",
    ".flatten()",
    ".sort()",
    ".distinct()",
    ".reverse()",
    "lists.range(",
    "sets.contains(",
    "sets.equivalent(",
    "sets.intersects(",
    "optional.of(",
    "optional.none()",
    "optional.ofNonZeroValue(",
    ".hasValue()",
    ".value()",
    ".or(",
    ".orValue(",
    ".?text",
    "[?0]",
    "url(",
    ".getQuery()",
    ".getHost()",
    "quantity(",
    ".isGreaterThan(",
    ".asInteger()",
    ".add(",
    ".sub(",
    "sign(",
    "ip(",
    ".family()",
    "cidr(",
    ".containsIP(",
    ".masked()",
    ".prefixLength()",
    "format.named(",
    "format.uri()",
    ".validate(",
    "\n",
    "'\\n'",
    "cel.bind(x, ",
    "isIP(",
    "isQuantity(",
    "isURL(",
];

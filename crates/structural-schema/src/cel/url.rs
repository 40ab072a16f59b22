//! URLs in expressions.

use std::rc::Rc;

use super::super::url::{Url, parse};
use super::functions::Args;
use super::meter::Fail;
use super::value::{MapKey, Val};

type Found<'v> = Result<Val<'v>, Fail>;

fn text<'c>(call: &'c mut Args<'_, '_>) -> Result<&'c str, Fail> {
    let [Val::String(text)] = call.args else {
        return Err(Fail::no_overload());
    };
    call.meter.traverse(text.len())?;
    Ok(text)
}

pub(crate) fn to_url<'v>(mut call: Args<'_, 'v>) -> Found<'v> {
    let text = text(&mut call)?;
    let url = parse(text).ok_or_else(|| Fail::error("URL parse error during conversion from string".to_owned()))?;
    Ok(Val::Url(Rc::new(url)))
}

pub(crate) fn is_url<'v>(mut call: Args<'_, 'v>) -> Found<'v> {
    Ok(Val::Bool(parse(text(&mut call)?).is_some()))
}

fn part<'v>(call: Args<'_, 'v>, part: impl FnOnce(&Url) -> String) -> Found<'v> {
    match call.args {
        [Val::Url(url)] => {
            call.meter.copy(url.length())?;
            Ok(Val::text(part(url)))
        }
        _ => Err(Fail::no_overload()),
    }
}

pub(crate) fn scheme<'v>(call: Args<'_, 'v>) -> Found<'v> {
    part(call, |url| url.scheme.clone())
}

pub(crate) fn host<'v>(call: Args<'_, 'v>) -> Found<'v> {
    part(call, |url| url.host.clone())
}

pub(crate) fn hostname<'v>(call: Args<'_, 'v>) -> Found<'v> {
    part(call, |url| url.hostname().to_owned())
}

pub(crate) fn port<'v>(call: Args<'_, 'v>) -> Found<'v> {
    part(call, |url| url.port().to_owned())
}

pub(crate) fn escaped_path<'v>(call: Args<'_, 'v>) -> Found<'v> {
    part(call, Url::escaped_path)
}

pub(crate) fn query<'v>(call: Args<'_, 'v>) -> Found<'v> {
    let [Val::Url(url)] = call.args else {
        return Err(Fail::no_overload());
    };
    call.meter.spend(url.query.len() as u64)?;
    let list = |values: Vec<String>| Val::list(values.into_iter().map(Val::text).collect());
    let map = url.query_map().into_iter().map(|(name, values)| (MapKey::String(name.into()), list(values)));
    Ok(Val::Map(Rc::new(map.collect())))
}

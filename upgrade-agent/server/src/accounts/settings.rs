//! `/setting`: the settings of the server.

use serde_json::Value;

use crate::core::{ApiRequest, Core};
use crate::wire::fault::Fault;
use crate::wire::row::row;
use crate::wire::shape::{flag, has, optional};
use crate::world::World;
use crate::world::model::{Setting, Stamp};
use crate::world::table::key;

/// `GET /setting`.
pub(crate) fn read(core: &mut Core, _: &ApiRequest) -> Result<Value, Fault> {
    Ok(setting(&core.world).map_or(Value::Null, row))
}

/// `POST /setting`: fields that the body omits stay.
pub(crate) fn write(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let body = &asked.body;
    if !(has(body, "toCheckAuth", flag) && has(body, "toFilterMetric", optional(flag))) {
        return Err(Fault::body());
    }
    let now = core.now();
    let setting = core.world.settings.get_mut(&at()).ok_or_else(|| Fault::internal("lost setting"))?;
    let was = (setting.to_check_auth, setting.to_filter_metric);
    setting.to_check_auth = body["toCheckAuth"].as_bool().unwrap_or(was.0);
    setting.to_filter_metric = body["toFilterMetric"].as_bool().unwrap_or(was.1);
    if was != (setting.to_check_auth, setting.to_filter_metric) {
        setting.stamp.touch(&now);
    }
    Ok(row(setting))
}

/// The one row of settings.
pub(crate) fn setting(world: &World) -> Option<&Setting> {
    world.settings.get(&at())
}

/// Makes sure that there are settings. Like the original, each start resets the server to accept declared
/// metrics only.
pub(crate) fn ensure_settings(core: &mut Core) {
    let stamp = Stamp::new(&core.now());
    let setting = Setting { stamp, id: 1, to_check_auth: false, to_filter_metric: true };
    core.world.settings.insert_first(at(), setting);
    let now = core.now();
    let off = |setting: &Setting| !setting.to_filter_metric;
    if core.world.settings.get(&at()).is_some_and(off)
        && let Some(setting) = core.world.settings.get_mut(&at())
    {
        setting.to_filter_metric = true;
        setting.stamp.touch(&now);
    }
}

fn at() -> String {
    key(&["1"])
}

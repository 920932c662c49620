//! Run by `.ci/axe`, which gets axe-core from npm. `PICTURES=FOLDER` keeps a picture of each screen.

use base64::prelude::*;
use serde_json::json;

use super::Page;
use super::screens_fit_into_a_narrow_window::screens;

#[tokio::test]
#[ignore = "needs axe-core: `.ci/axe` runs it"]
async fn axe_finds_nothing_on_any_screen() {
    let (page, screens) = screens().await;
    for scheme in ["light", "dark"] {
        page.browser.prefers(scheme).await;
        for (address, text) in &screens {
            page.shows(address).await;
            page.says(text).await;
            page.browser.passes_axe(&format!("{scheme} {address}")).await;
            keep_picture(&page, scheme, address).await;
        }
    }
    page.browser.narrows().await;
    for (address, text) in &screens {
        page.shows(address).await;
        page.says(text).await;
        page.browser.passes_axe(&format!("narrow {address}")).await;
    }
}

async fn keep_picture(page: &Page, scheme: &str, address: &str) {
    let Some(folder) = std::env::var_os("PICTURES") else { return };
    let picture =
        page.browser.devtools("Page.captureScreenshot", json!({ "captureBeyondViewport": true })).await;
    let picture = BASE64_STANDARD.decode(picture["data"].as_str().unwrap()).unwrap();
    let name = address.trim_start_matches("#/").replace(['/', '?', '%'], "_");
    std::fs::write(std::path::Path::new(&folder).join(format!("{scheme}-{name}.png")), picture).unwrap();
}

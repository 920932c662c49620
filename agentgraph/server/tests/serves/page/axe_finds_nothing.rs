//! Run by `.ci/axe`, which gets axe-core from npm.

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
        }
    }
    page.browser.narrows().await;
    for (address, text) in &screens {
        page.shows(address).await;
        page.says(text).await;
        page.browser.passes_axe(&format!("narrow {address}")).await;
    }
}

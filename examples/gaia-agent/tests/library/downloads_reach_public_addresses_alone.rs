//! Downloads: every address that a name resolves to is checked, and the connection goes to the checked
//! address. The evaluation server alone may be on this machine.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use gaia_agent::net::{Guard, Resolve, is_public};
use serde_json::json;
use tokio::net::TcpListener;

use crate::support::{Scene, call, call_with};

/// Resolves names of tests. What a name resolves to changes with each look-up.
#[derive(Clone, Default)]
struct Names {
    known: Arc<Vec<(&'static str, Vec<IpAddr>)>>,
    asked: Arc<AtomicU64>,
}

impl Names {
    fn new(known: Vec<(&'static str, &[&str])>) -> Self {
        let read = |(name, addresses): (_, &[&str])| {
            (name, addresses.iter().map(|one| one.parse().unwrap()).collect())
        };
        Names { known: Arc::new(known.into_iter().map(read).collect()), asked: Arc::default() }
    }
}

#[async_trait::async_trait]
impl Resolve for Names {
    async fn resolve(&self, host: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
        let before = self.asked.fetch_add(1, Ordering::Relaxed);
        let found = self.known.iter().filter(|(name, _)| *name == host).nth(usize::try_from(before).unwrap());
        let found = found.or_else(|| self.known.iter().rfind(|(name, _)| *name == host));
        let (_, addresses) = found.ok_or_else(|| std::io::Error::other("no such name"))?;
        Ok(addresses.iter().map(|address| SocketAddr::new(*address, port)).collect())
    }
}

/// A server on this machine, which redirects `/to/..` there.
async fn server() -> SocketAddr {
    let redirect = |to: String| (StatusCode::FOUND, [(header::LOCATION, to)]).into_response();
    let routes =
        Router::new()
            .route("/file.txt", get(async || "content"))
            .route("/long", get(async || "x".repeat(5_000)))
            .route(
                "/endless",
                get(async || {
                    let pieces =
                        futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>("x".repeat(1000)));
                    axum::body::Body::from_stream(pieces)
                }),
            )
            .route("/silent", get(async || std::future::pending::<&str>().await))
            .route("/missing", get(async || StatusCode::NOT_FOUND))
            .route("/loop", get(move || async move { redirect("/loop".into()) }))
            .route(
                "/named",
                get(async || {
                    ([(header::CONTENT_DISPOSITION, "attachment; filename=\"../../evil.sh\"")], "x")
                }),
            )
            .route(
                "/to",
                get(move |axum::extract::RawQuery(to): axum::extract::RawQuery| async move {
                    redirect(to.unwrap())
                }),
            );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, routes).await });
    address
}

async fn refused(guard: &Guard, address: &str) -> String {
    match guard.fetch(address).await {
        Err(error) => error.to_string(),
        Ok(fetched) => panic!("{address} was fetched: {} bytes", fetched.bytes.len()),
    }
}

#[tokio::test]
async fn addresses_of_this_machine_and_its_networks_are_refused() {
    let port = server().await.port();
    let guard = Guard::new();
    for address in [
        format!("http://127.0.0.1:{port}/file.txt"),
        format!("http://localhost:{port}/file.txt"),
        format!("http://[::1]:{port}/file.txt"),
        format!("http://[::ffff:127.0.0.1]:{port}/file.txt"),
        format!("http://0.0.0.0:{port}/file.txt"),
        format!("http://2130706433:{port}/file.txt"),
        format!("http://0x7f.1:{port}/file.txt"),
        format!("http://127.1:{port}/file.txt"),
        "http://169.254.169.254/latest/meta-data/".into(),
        "http://10.0.0.1/".into(),
        "http://192.168.0.1/".into(),
        "http://[fd00::1]/".into(),
    ] {
        let error = refused(&guard, &address).await;
        assert!(error.contains("not public"), "{address}: {error}");
    }
    for (address, why) in [
        ("file:///etc/passwd", "only http and https"),
        ("ftp://files.example/x", "only http and https"),
        ("data:text/plain,x", "only http and https"),
        ("http://user:secret@files.example/", "user or a password"),
        ("/file.txt", "no address"),
        ("not an address", "no address"),
        ("", "no address"),
    ] {
        let error = refused(&guard, address).await;
        assert!(error.contains(why), "{address}: {error}");
    }
}

#[tokio::test]
async fn a_name_with_one_address_that_is_not_public_is_refused() {
    let names = Names::new(vec![
        ("both.example", &["93.184.215.14", "127.0.0.1"]),
        ("inner.example", &["10.1.2.3"]),
        ("none.example", &[]),
    ]);
    let guard = Guard::new().resolver(names);
    for (address, why) in [
        ("http://both.example/", "not public"),
        ("https://inner.example/", "not public"),
        ("http://none.example/", "no address"),
        ("http://unknown.example/", "no such name"),
    ] {
        let error = refused(&guard, address).await;
        assert!(error.contains(why), "{address}: {error}");
    }
}

#[tokio::test]
async fn the_connection_goes_to_the_checked_address_and_the_name_is_resolved_once() {
    let port = server().await.port();
    // No name server knows this name, so only the address that was checked leads to the server.
    let names =
        Names::new(vec![("evaluation.example", &["127.0.0.1"]), ("evaluation.example", &["10.0.0.1"])]);
    let origin = format!("http://evaluation.example:{port}");
    let guard = Guard::new().resolver(names.clone()).trusted(origin.parse().unwrap());
    let fetched = guard.fetch(&format!("{origin}/file.txt")).await.unwrap();
    assert_eq!((fetched.bytes.as_slice(), fetched.name.as_deref()), (&b"content"[..], Some("file.txt")));
    assert_eq!(names.asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn each_redirect_is_checked_as_the_first_address() {
    let (own, other) = (server().await, server().await);
    let origin = format!("http://{own}");
    let names = Names::new(vec![("rebound.example", &["127.0.0.1"]), ("localhost", &["127.0.0.1"])]);
    let guard = Guard::new().trusted(origin.parse().unwrap()).resolver(names);
    let to = |address: &str| format!("{origin}/to?{address}");
    assert_eq!(guard.fetch(&to("/file.txt")).await.unwrap().bytes, b"content");
    assert_eq!(guard.fetch(&to(&format!("{origin}/file.txt"))).await.unwrap().url.path(), "/file.txt");
    for address in [
        format!("http://{other}/file.txt"),
        format!("http://localhost:{}/file.txt", own.port()),
        format!("http://rebound.example:{}/file.txt", own.port()),
        format!("https://{own}/file.txt"),
        format!("//{other}/file.txt"),
        "http://169.254.169.254/".into(),
    ] {
        let error = refused(&guard, &to(&address)).await;
        assert!(error.contains("not public") || error.contains("could not be reached"), "{address}: {error}");
        assert!(
            !error.contains("could not be reached") || address.starts_with("https"),
            "{address}: {error}"
        );
    }
    assert!(refused(&guard, &to("file:///etc/passwd")).await.contains("only http and https"));
    assert!(refused(&guard, &format!("{origin}/loop")).await.contains("redirects more than 5 times"));
}

#[tokio::test]
async fn size_and_time_and_hosts_are_bounded() {
    let own = server().await;
    let origin = format!("http://{own}");
    let guard =
        Guard::new().trusted(origin.parse().unwrap()).max_bytes(1_000).timeout(Duration::from_millis(400));
    for path in ["/long", "/endless"] {
        assert!(refused(&guard, path).await.contains("longer than 1000 bytes"), "{path}");
    }
    assert!(refused(&guard, "/silent").await.contains("took longer than 400ms"));
    assert!(refused(&guard, "/missing").await.contains("404"));
    let names = Names::new(vec![
        ("a.example", &["10.0.0.1"]),
        ("b.a.example", &["10.0.0.1"]),
        ("nota.example", &["10.0.0.1"]),
    ]);
    let few = Guard::new().hosts(["A.example"]).resolver(names);
    for (address, why) in [
        ("http://a.example/", "not public"),
        ("http://b.a.example/", "not public"),
        ("http://nota.example/", "limited to a.example"),
        ("http://1.1.1.1/", "limited to a.example"),
    ] {
        let error = refused(&few, address).await;
        assert!(error.contains(why), "{address}: {error}");
    }
}

#[tokio::test]
async fn the_tool_stores_a_file_under_a_plain_name_and_can_run_again() {
    let scene = Scene::new().await;
    let said = call(&scene, "download_file", json!({ "url": "/library/stations.csv" })).await.unwrap();
    assert!(said.starts_with("The file is `downloads/stations.csv` ("), "{said}");
    let again = call(&scene, "download_file", json!({ "url": "/library/stations.csv" })).await.unwrap();
    assert_eq!(again, said);
    assert_eq!(std::fs::read_dir(scene.folder.file("downloads/call")).unwrap().count(), 1);
    let named = json!({ "url": "/library/stations.csv", "name": "../../../here/.bashrc" });
    assert!(call(&scene, "download_file", named).await.unwrap().contains("`downloads/bashrc`"));
    assert!(
        call(&scene, "download_file", json!({ "url": "/library/none" })).await.unwrap_err().contains("404")
    );
    assert!(
        call(&scene, "download_file", json!({ "url": "http://127.0.0.1:9/x" }))
            .await
            .unwrap_err()
            .contains("not public")
    );

    let own = server().await;
    let trusted = Guard::new().trusted(format!("http://{own}").parse().unwrap());
    let said =
        call_with(&scene, |builder| builder.guard(trusted), "download_file", json!({ "url": "/named" }))
            .await;
    assert!(said.unwrap().contains("`downloads/evil.sh`"), "the name of a server leads nowhere");
    assert!(!scene.folder.file("evil.sh").exists() && !scene.folder.file("here/.bashrc").exists());
}

#[test]
fn only_addresses_of_the_public_internet_are_public() {
    let public = [
        "1.1.1.1",
        "93.184.215.14",
        "100.63.255.255",
        "100.128.0.1",
        "172.15.0.1",
        "172.32.0.1",
        "192.0.1.1",
        "198.17.255.255",
        "198.20.0.1",
        "223.255.255.255",
        "2606:4700:4700::1111",
        "2001:4860:4860::8888",
        "::ffff:1.1.1.1",
        "64:ff9b::101:101",
        "2002:101:101::1",
    ];
    let other = [
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "100.64.0.1",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.0.1",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.8",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:2::1",
        "2001:10::1",
        "2001:20::1",
        "2001:db8::1",
        "2002:7f00:1::1",
        "2002:a00:1::1",
        "3fff::1",
        "5f00::1",
        "fc00::1",
        "fd12::1",
        "fe80::1",
        "fec0::1",
        "ff02::1",
    ];
    for address in public {
        assert!(is_public(address.parse().unwrap()), "{address}");
    }
    for address in other {
        assert!(!is_public(address.parse().unwrap()), "{address}");
    }
}

#[tokio::test]
async fn names_of_downloads_are_plain_and_lead_nowhere() {
    let scene = Scene::new().await;
    let named = async |name: &str| {
        let input = json!({ "url": "/library/stations.csv", "name": name });
        let said = call(&scene, "download_file", input).await.unwrap();
        said.split('`').nth(1).unwrap().strip_prefix("downloads/").unwrap().to_owned()
    };
    assert_eq!(named("my report.pdf").await, "my report.pdf");
    for name in ["../../etc/passwd", "/etc/passwd", "..\\..\\passwd", ".passwd", "pass\0wd", "pa/../passwd"] {
        assert_eq!(named(name).await, "passwd", "{name:?}");
    }
    for name in ["", "..", "/", "\u{202e}", "..."] {
        let plain = named(name).await;
        assert!(plain.starts_with("download-") && plain == named(name).await, "{name:?}: {plain}");
    }
    assert_eq!(named(&"a".repeat(500)).await.len(), 100);
}

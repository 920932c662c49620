//! The routes of `serve` as a program asks them that is no browser, or pretends to be one of another site.

use serde_json::{Value, json};

use crate::common::Folder;
use crate::shell::{Running, program, run};

struct Served {
    url: String,
    http: reqwest::Client,
    running: Running,
}

fn serve(folder: &Folder, more: &[&str]) -> Served {
    let mut args = vec!["serve"];
    args.extend(more);
    let mut running = Running::start(program(folder, &args));
    let url = running.line();
    Served { url, http: agentgraph_llm::http_client_builder().no_proxy().build().unwrap(), running }
}

impl Served {
    fn get(&self, path: &str) -> reqwest::RequestBuilder {
        self.http.get(format!("{}{path}", self.url))
    }

    fn post(&self, path: &str, body: Value) -> reqwest::RequestBuilder {
        self.http.post(format!("{}{path}", self.url)).json(&body)
    }

    /// What an open page is sent until it is true.
    async fn until(&self, is_it: impl Fn(&Value) -> bool) -> Value {
        let mut response = self.get("/page/events").send().await.unwrap();
        let mut text = String::new();
        while let Some(chunk) = response.chunk().await.unwrap() {
            text += std::str::from_utf8(&chunk).unwrap();
            while let Some((event, rest)) = text.split_once("\n\n") {
                let data = event.strip_prefix("data: ").map(|data| serde_json::from_str(data).unwrap());
                text = rest.to_owned();
                if let Some(found) = data.filter(|data| is_it(data)) {
                    return found;
                }
            }
        }
        panic!("the page is told nothing more");
    }
}

async fn text(request: reqwest::RequestBuilder) -> (u16, String) {
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

#[tokio::test]
async fn no_other_name_and_no_page_of_another_site_is_answered() {
    let folder = Folder::new();
    let served = serve(&folder, &[]);
    let host = served.url.trim_start_matches("http://").to_owned();
    let port = host.split(':').next_back().unwrap();
    // DNS that leads another site's name to this machine.
    for name in [
        &format!("evil.example:{port}"),
        "evil.example",
        "127.0.0.1",
        &format!("127.0.0.1.evil.example:{port}"),
    ] {
        for path in ["/", "/page/events", "/questions"] {
            assert_eq!(text(served.get(path).header("host", name)).await.0, 421, "{name}{path}");
        }
    }
    assert_eq!(text(served.get("/").header("host", format!("localhost:{port}"))).await.0, 200);
    let posts = [("/page/run", json!({ "runs": 1, "limit": 1 })), ("/page/submit", json!({}))];
    for (path, body) in posts {
        for (name, value) in [
            ("origin", "http://evil.example"),
            ("origin", "null"),
            ("origin", &format!("https://{host}")),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            let request = served.post(path, body.clone()).header(name, value);
            assert_eq!(text(request).await.0, 403, "{path} {name}: {value}");
        }
        // A form of another site can send no JSON.
        let form = served.http.post(format!("{}{path}", served.url)).body(body.to_string());
        assert_eq!(text(form).await.0, 415, "{path}");
    }
    assert!(!folder.file("data/runs").exists(), "none of them began a run");
    let own = served.post("/page/run", json!({ "runs": 1, "limit": 1 }));
    let own = own.header("origin", &served.url).header("sec-fetch-site", "same-origin");
    assert_eq!(text(own).await.0, 202);
}

#[tokio::test]
async fn nothing_runs_but_the_scripts_of_the_page_and_files_are_only_kept() {
    let folder = Folder::new();
    let served = serve(&folder, &[]);
    let files = served.until(|data| data["whole"] == true).await["rows"].as_array().unwrap().clone();
    let with_file = files.iter().find(|row| !row["file"].is_null()).unwrap();
    let file = format!("/page/files/{}", with_file["question"]["task_id"].as_str().unwrap());
    for path in ["/", "/page/page.js", "/page/page.css", "/questions", &file] {
        let response = served.get(path).send().await.unwrap();
        let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        let policy = header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; ") && !policy.contains("unsafe"), "{policy}");
        assert!(!policy.contains("http") && !policy.contains('*'), "{policy}");
        assert_eq!(header("x-content-type-options"), "nosniff");
    }
    let response = served.get(&file).send().await.unwrap();
    assert_eq!(response.headers()["content-disposition"], "attachment");
    assert_eq!(response.headers()["content-type"], "application/octet-stream");
    let original = served.get(&file.replace("/page", "")).send().await.unwrap();
    assert_eq!(response.bytes().await.unwrap(), original.bytes().await.unwrap());
    for path in ["/page/files/nothing", "/page/files/..%2F..%2Fetc%2Fpasswd"] {
        let (status, why) = text(served.get(path)).await;
        assert!(status == 409 && why.starts_with("E_GAIA_UNKNOWN: "), "{status} {why}");
    }
    for path in ["/", "/page/page.js", "/page/page.css"] {
        let content = text(served.get(path)).await.1;
        assert!(
            !content.contains("http:") && !content.contains("https:") && !content.contains("innerHTML"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn one_run_at_a_time_works_in_the_folder_and_the_page_says_so() {
    let folder = Folder::new();
    let served = serve(&folder, &[]);
    let lock = std::fs::File::create(folder.file("data/run.lock")).unwrap();
    lock.lock().unwrap();
    for (path, body) in [
        ("/page/run", json!({ "runs": 1 })),
        ("/page/submit", json!({ "username": "ada", "agent_code": "https://a.example" })),
    ] {
        let (status, why) = text(served.post(path, body)).await;
        assert!(status == 409 && why.starts_with("E_GAIA_IN_USE: "), "{why}");
    }
    drop(lock);
    assert_eq!(text(served.post("/page/run", json!({ "runs": 2, "level": 1 }))).await.0, 202);
    let end = served.until(|data| data["running"] == false && data["run"] != "").await;
    assert!(end["plan"]["runs"] == 2 && end["plan"]["level"] == 1, "{}", end["plan"]);
    // The same run is that of the command line.
    let report = run(&folder, &["report"]).good().out();
    assert!(report.contains(end["run"].as_str().unwrap()) && report.contains("2 of 2 runs"), "{report}");
    let (status, why) = text(served.post("/page/run", json!({ "runs": 1, "level": 9 }))).await;
    assert!(status == 409 && why.starts_with("E_GAIA_QUESTIONS: "), "{why}");
}

#[tokio::test]
async fn answers_are_submitted_once_unless_told_to_do_so_again() {
    let folder = Folder::new();
    let served = serve(&folder, &[]);
    let submit = |again: bool| {
        let who = json!({ "username": "ada", "agent_code": "https://code.example/agent", "again": again });
        text(served.post("/page/submit", who))
    };
    let (status, why) = submit(false).await;
    assert!(status == 409 && why.starts_with("E_GAIA_QUESTIONS: "), "{why}");
    assert_eq!(text(served.post("/page/run", json!({ "runs": 1 }))).await.0, 202);
    served.until(|data| data["running"] == false && data["run"] != "").await;
    let (status, why) = text(served.post("/page/submit", json!({ "username": "ada" }))).await;
    assert!(status == 409 && why.contains("--agent-code"), "{why}");
    // Two at once: one is the first, and the other finds a lock or the stored submission.
    let both = tokio::join!(submit(false), submit(false));
    let mut codes = [both.0.0, both.1.0];
    codes.sort_unstable();
    assert_eq!(codes, [200, 409], "{both:?}");
    let (status, why) = submit(false).await;
    assert!(status == 409 && why.starts_with("E_GAIA_SUBMITTED: "), "{why}");
    let (status, said) = submit(true).await;
    assert_eq!((status, said.as_str()), (200, "95.0 %, 19 right. 19 of 20 answers are right."));
}

#[cfg(unix)]
#[tokio::test]
async fn an_interrupt_ends_the_program_after_what_is_under_way() {
    let folder = Folder::new();
    let served = serve(&folder, &[]);
    served.running.signal("INT");
    assert_eq!(served.running.wait(), Some(0), "nothing was under way");

    let served = serve(&folder, &[]);
    assert_eq!(text(served.post("/page/run", json!({ "runs": 9 }))).await.0, 202);
    served.until(|data| data["rows"].as_array().unwrap().iter().any(|row| row["steps"] != json!([]))).await;
    served.running.signal("INT");
    let code = served.running.wait();
    let again = run(&folder, &["run", "--runs", "9"]).good();
    assert!(again.out().contains("19 of 20 answers are right."), "{}", again.out());
    assert_eq!(code == Some(1), again.err().contains("goes on: "), "{code:?} {}", again.err());
}

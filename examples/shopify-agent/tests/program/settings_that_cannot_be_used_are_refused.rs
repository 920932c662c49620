//! Settings that cannot be used: the program says so and does not start.

use crate::process::{Folder, program, refused};

#[tokio::test]
async fn each_has_a_message_that_says_what_to_do() {
    let folder = Folder::new();
    let cases: [(&[&str], &str); 6] = [
        (&["--model", "nonsense"], "names no model"),
        (&["--model", "groq:llama"], "set GROQ_API_KEY"),
        (&["--model", "anthropic:claude"], "ANTHROPIC_API_KEY"),
        (&["--shop-url", "https://shop.example"], "SHOPIFY_ACCESS_TOKEN"),
        (&["--shop-url", "http://shop.example", "--shop-token", "t"], "must begin with `https://`"),
        (&["--listen", "nowhere"], "invalid"),
    ];
    for (arguments, expected) in cases {
        let (said, code) = refused(program(&folder).args(arguments)).await;
        assert!(said.contains(expected), "{arguments:?}: {said}");
        assert_eq!(code, Some(1), "{arguments:?}");
        assert!(!said.contains("SHOPIFY_ACCESS_TOKEN=t"));
    }
}

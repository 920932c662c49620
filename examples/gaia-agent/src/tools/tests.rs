//! What the tools are made of.

mod arithmetic {
    use proptest::prelude::*;

    use crate::tools::arithmetic::evaluate;

    #[test]
    fn expressions_have_the_value_that_python_gives_them() {
        let cases = [
            ("2 + 3 * 4", "14"),
            ("(2 + 3) * 4", "20"),
            ("2 ** 3 ** 2", "512"),
            ("-2 ^ 2", "-4"),
            ("2 ^ -1", "0.5"),
            ("7 // 2", "3"),
            ("-7 // 2", "-4"),
            ("-7 % 3", "2"),
            ("7 % -3", "-2"),
            ("7.5 % 2", "1.5"),
            ("10 / 4", "2.5"),
            ("10 / 5", "2"),
            ("0.1 + 0.2", "0.3"),
            ("1 / 3", "0.333333333333"),
            ("2 ** 100", "1267650600228229401496703205376"),
            ("20!", "2432902008176640000"),
            ("factorial(5) + gcd(12, 18) + lcm(4, 6)", "138"),
            ("sqrt(16) + abs(-3)", "7"),
            ("math.sqrt(2)", "1.41421356237"),
            ("round(2.675, 1)", "2.7"),
            ("round(-2.5)", "-3"),
            ("floor(-2.5) + ceil(2.1)", "0"),
            ("max(3, 9, 2) - min(3, 9, 2)", "7"),
            ("sum(1, 2, 3) / 3", "2"),
            ("log10(1000) + log(e) + log2(8) + log(81, 3)", "11"),
            ("sin(pi / 2) + cos(0)", "2"),
            ("1e3 + 1_000", "2000"),
            (".5 + 5.", "5.5"),
            ("3 × 4 ÷ 6 − 1", "1"),
            ("1e300 * 10", "1e301"),
            ("2 ** 0.5", "1.41421356237"),
            ("(-8) ** 3", "-512"),
            ("99999999999999999999 + 1", "100000000000000000000"),
        ];
        for (expression, value) in cases {
            assert_eq!(evaluate(expression).as_deref(), Ok(value), "{expression}");
        }
    }

    #[test]
    fn hostile_expressions_are_errors_and_end_at_once() {
        let deep = "(".repeat(1_000) + "1";
        let signs = "-".repeat(1_500) + "1";
        let powers = "2^".repeat(900) + "2";
        let long = "1+".repeat(2_000) + "1";
        let calls = "sqrt(".repeat(300);
        for expression in [
            "",
            " ",
            "2 +",
            "* 2",
            "(2",
            "2)",
            "2 3",
            "1 / 0",
            "1 // 0",
            "1 % 0",
            "0 ** -1",
            "9 ** 9 ** 9 ** 9",
            "999999999!",
            "2.5!",
            "(-1)!",
            "sqrt(-1)",
            "(-8) ** 0.5",
            "log(0)",
            "log(-1)",
            "foo(1)",
            "foo",
            "1,000",
            "__import__('os').system('ls')",
            "1; 2",
            "x = 1",
            "1.2.3",
            "sqrt()",
            "sqrt(1, 2)",
            "max()",
            "\u{0}",
            "٣ + 1",
            "1e999",
            "10 ** 400",
            deep.as_str(),
            signs.as_str(),
            powers.as_str(),
            long.as_str(),
            calls.as_str(),
        ] {
            assert!(evaluate(expression).is_err(), "{expression}: {:?}", evaluate(expression));
        }
    }

    /// An expression, with its value by the obvious recursion over fractions of whole numbers.
    #[derive(Clone, Debug)]
    enum Tree {
        Leaf(i64),
        Node(Box<Tree>, char, Box<Tree>),
    }

    impl Tree {
        fn text(&self) -> String {
            match self {
                Tree::Leaf(number) if *number < 0 => format!("({number})"),
                Tree::Leaf(number) => number.to_string(),
                Tree::Node(left, sign, right) => format!("({} {sign} {})", left.text(), right.text()),
            }
        }

        fn value(&self) -> Option<i128> {
            match self {
                Tree::Leaf(number) => Some((*number).into()),
                Tree::Node(left, sign, right) => {
                    let (left, right) = (left.value()?, right.value()?);
                    match sign {
                        '+' => left.checked_add(right),
                        '-' => left.checked_sub(right),
                        '*' => left.checked_mul(right),
                        _ => (right != 0).then(|| {
                            left.rem_euclid(right.abs())
                                + if right < 0 && left.rem_euclid(right.abs()) != 0 { right } else { 0 }
                        }),
                    }
                }
            }
        }
    }

    fn trees() -> impl Strategy<Value = Tree> {
        (-50_i64..50).prop_map(Tree::Leaf).prop_recursive(5, 40, 2, |inner| {
            let sign = prop_oneof![Just('+'), Just('-'), Just('*'), Just('%')];
            (inner.clone(), sign, inner)
                .prop_map(|(left, sign, right)| Tree::Node(left.into(), sign, right.into()))
        })
    }

    proptest! {
        #[test]
        fn whole_numbers_are_exact(tree in trees()) {
            let found = evaluate(&tree.text());
            match tree.value() {
                Some(value) => prop_assert_eq!(found, Ok(value.to_string())),
                // An overflow is a rounded number, a division by nothing an error.
                None => prop_assert!(found.map_or(true, |found| found.parse::<f64>().is_ok())),
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in "[-+*/%^()!,.0-9a-z ]{0,60}") {
            let _ = evaluate(&text);
        }
    }
}

mod kinds {
    use crate::tools::kinds::{by_name, identify};

    #[test]
    fn the_content_decides_and_a_name_that_says_otherwise_is_named() {
        let cases: [(&str, &[u8], &str, Option<&str>); 8] = [
            ("a.png", b"\x89PNG\r\n", "an image", None),
            ("a.png", b"%PDF-1.4", "a PDF", Some("an image")),
            ("a.pdf", b"<!DOCTYPE html><p>", "a web page", Some("a PDF")),
            ("a", b"RIFF\0\0\0\0WAVEfmt ", "a recording", None),
            ("a.mp3", b"\0\x01\x02", "a recording", None),
            ("a.csv", b"\xff\xfea\0,\0", "a table as text", None),
            ("a.docx", b"PK\x03\x04broken", "an archive", Some("a Word document")),
            ("a.bin", b"\x01\0\x02", "data of an unknown kind", None),
        ];
        for (name, bytes, kind, said) in cases {
            let (found, otherwise) = identify(name, bytes);
            assert_eq!((found.name, otherwise.map(|kind| kind.name)), (kind, said), "{name}");
        }
    }

    #[test]
    fn a_tool_that_is_not_offered_is_not_named() {
        let image = by_name("a.png").unwrap();
        assert_eq!(image.sentence(&|_| true), "It is an image: `analyze_image` looks at it.");
        assert_eq!(image.sentence(&|_| false), "It is an image: no tool of this run reads it.");
        let code = by_name("A.PY").unwrap();
        assert_eq!(code.tools(&|tool| tool == "read_file"), "`read_file` shows its text");
    }
}

mod feed {
    use crate::tools::feed::{papers, transcript};

    #[test]
    fn captions_of_all_three_forms_have_their_times() {
        let srv1 = "<transcript><text start=\"61.5\" dur=\"2\">It&amp;#39;s hot</text><text start=\"70\"> </text></transcript>";
        let srv3 = "<timedtext format=\"3\"><body><w t=\"0\"/><p t=\"61500\" d=\"9\"><s>It&amp;#39;s</s><s t=\"9\"> hot</s></p><p t=\"7\" a=\"1\">\n</p></body></timedtext>";
        let json3 = r#"{"wireMagic": "pb3", "events": [{"tStartMs": 0, "id": 1}, {"tStartMs": 61500, "segs": [{"utf8": "It's"}, {"utf8": " hot"}]}, {"tStartMs": 7, "segs": [{"utf8": "\n"}]}]}"#;
        for document in [srv1, srv3, json3] {
            assert_eq!(transcript(document).unwrap(), ["[1:01] It's hot"], "{document}");
        }
        assert!(transcript("{\"events\": 7}").is_err() && transcript("<p").is_err());
    }

    #[test]
    fn an_error_of_arxiv_is_no_paper() {
        let feed = "<feed><entry><id>http://arxiv.org/api/errors#incorrect_id</id><title>Error</title><summary>incorrect id format</summary></entry></feed>";
        assert_eq!(papers(feed).unwrap_err(), "arXiv refused the request: incorrect id format");
    }
}

mod view {
    use crate::tools::readers::{page, view};

    #[test]
    fn a_long_text_is_shown_in_parts_that_join() {
        let text: String = (0..9_000).map(|at| format!("line {at} é\n")).collect();
        let mut joined = String::new();
        let mut start = 0;
        loop {
            let shown = view(&text, start, None);
            let (part, note) = shown.rsplit_once("\n[characters ").unwrap();
            joined += part;
            match note.split_once("`start` ") {
                Some((_, next)) => start = next.split(',').next().unwrap().parse().unwrap(),
                None => break,
            }
        }
        assert_eq!(joined, text);
        let pages = (1..=4).map(|number| page(&text, number, None));
        let pages: String = pages.map(|shown| shown.rsplit_once("\n[page ").unwrap().0.to_owned()).collect();
        assert_eq!(pages, text);
        assert_eq!(page(&text, 9, None), "[there are 4 pages: there is no page 9]");
        assert_eq!((view("a", 0, None), page("a", 0, None)), ("a".to_owned(), "a".to_owned()));
        assert!(view("a", 7, None).contains("nothing at 7"));
    }

    #[test]
    fn places_are_found_in_any_case_and_can_be_read_from() {
        let text = format!("{}Die GRÖSSE ist 7{}", "x ".repeat(20_000), " y".repeat(5_000));
        assert_eq!(view(&text, 0, Some("größe")), "[`größe` is not in the text, from character 0 on]");
        let found = view(&text, 0, Some("grösse"));
        assert!(found.starts_with("[at character 40004]") && found.contains("ist 7"), "{found}");
        assert!(view(&text, 40_004, None).starts_with("GRÖSSE ist 7"));
        assert!(page(&text, 1, Some("grösse")).starts_with("[on page 2]"));
        let many = view(&"word . ".repeat(3_000), 0, Some("word"));
        assert!(many.contains("there are more: go on with `start`"), "{many}");
    }
}

mod html {
    use proptest::prelude::*;

    use crate::tools::html::{page, results, text, unescaped};
    use crate::tools::work::Work;

    #[test]
    fn results_are_read_with_their_addresses() {
        let page = r#"<div class="result"><h2 class="result__title">
            <a rel="nofollow" class="result__a" href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fa.example%2Fx%3Fy%3D1&amp;rut=0">The <b>first</b> &amp; best</a></h2>
            <a class="result__snippet" href="x">A line &#x27;here&#39;.</a></div>
            <div class="result result--ad"><a class="result__a" href="https://advert.example/">Buy</a></div>
            <div class="result"><a class="result__a" href="https://b.example/">Second</a> <a class="result__snippets" href="x">no</a>"#;
        assert_eq!(
            results(page),
            ["The first & best\nhttps://a.example/x?y=1\nA line 'here'.", "Second\nhttps://b.example/\n"]
        );
    }

    #[test]
    fn a_page_becomes_text_with_its_headings_lists_and_tables() {
        let html = "<html><head><title>A &amp; B</title><style>p {}</style><script>if (a < b) { '</p>' }</script></head><body>\
            <h1>Head</h1><p>One &eacute;\n two.</p><ul><li>a<ol><li>b</ol><li>c</ul>\
            <table><tr><th colspan=2>wide<tr><td>x<br>y</td><td>z</td></tr></table><a href='/to'>there</a><pre>a\n  b</pre>";
        let base = "https://a.example/page".parse().unwrap();
        let page = page(html, Some(&base), &Work::new()).unwrap();
        assert_eq!(
            page.to_text(),
            "# A & B\n\n# Head\n\nOne é two.\n\n- a\n  1. b\n- c\n\n| wide | |\n| x y | z |\n\nthere\n\na\n  b"
        );
        assert_eq!(page.links, [("there".to_owned(), "https://a.example/to".to_owned())]);
    }

    #[test]
    fn a_page_of_a_million_open_elements_ends() {
        let page = page(&"<div><b><table><td>".repeat(250_000), None, &Work::new()).unwrap();
        assert!(page.text.len() < 8 << 20);
        assert_eq!(
            (unescaped("&amp;lt;&#39;&nope;<b>"), text("a <b>b</b>&hellip;")),
            ("&lt;'&nope;<b>".to_owned(), "a b…".to_owned())
        );
    }

    proptest! {
        #[test]
        fn no_page_makes_it_panic(page in "(<a |</a>|class=|result__a|result__snippet|href=|\"|'|>|<|&#|&amp;|;|é| ){0,60}") {
            results(&page);
            text(&page);
        }
    }
}

mod desk {
    use std::sync::Arc;
    use std::time::Duration;

    use crate::net::{Guard, Http};
    use crate::settings::Addresses;
    use crate::tools::{Desk, Services};

    /// A reader that never comes to an end by itself.
    #[tokio::test]
    async fn blocking_work_ends_with_the_call_that_waits_for_it() {
        let folder = std::env::temp_dir().join(format!("gaia-desk-{}", uuid::Uuid::new_v4()));
        let services = Services {
            http: Http::new(true).unwrap(),
            guard: Guard::new(),
            addresses: Addresses::on("http://127.0.0.1:1").unwrap(),
            tavily_key: None,
            media: None,
            python: None,
        };
        let desk = Desk::new(Arc::new(services), None, &folder, None).unwrap();
        let (sender, ended) = tokio::sync::oneshot::channel();
        let endless = desk.blocking(move |_, work| {
            while work.check().is_ok() {
                std::thread::yield_now();
            }
            let mut rest = Vec::new();
            let read = std::io::Read::read_to_end(&mut work.reader(b"more"), &mut rest);
            let _ = sender.send(read.is_err());
        });
        assert!(tokio::time::timeout(Duration::from_millis(1), endless).await.is_err());
        assert!(ended.await.unwrap(), "libraries can read no more");
        std::fs::remove_dir_all(folder).unwrap();
    }
}

mod youtube {
    use crate::tools::youtube::video_id;

    #[test]
    fn the_id_of_a_video_is_found_in_all_forms_of_its_address() {
        for video in [
            "L1vXCYZAYYM",
            "https://www.youtube.com/watch?v=L1vXCYZAYYM",
            "http://youtube.com/watch?t=3&v=L1vXCYZAYYM",
            "https://m.youtube.com/watch?v=L1vXCYZAYYM#x",
            "https://youtu.be/L1vXCYZAYYM?si=x",
            "https://www.youtube.com/shorts/L1vXCYZAYYM",
            "https://www.youtube.com/embed/L1vXCYZAYYM",
        ] {
            assert_eq!(video_id(video).as_deref(), Some("L1vXCYZAYYM"), "{video}");
        }
        for video in [
            "",
            "short",
            "https://evil.example/watch?v=L1vXCYZAYYM",
            "https://youtube.com.evil.example/watch?v=L1vXCYZAYYM",
            "https://www.youtube.com/watch?v=../../../../x",
            "https://www.youtube.com/watch",
            "file:///etc/passwd",
        ] {
            assert_eq!(video_id(video), None, "{video}");
        }
    }
}

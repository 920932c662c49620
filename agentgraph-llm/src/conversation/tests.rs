//! [`Messages`] beside a `Vec`: the same list, the same stored bytes, and answers that are those of a look at
//! all messages.

use agentgraph::checkpoint::delta::DeltaWriter;
use agentgraph::reduce::{ById, KeyedWrite, Reducer, Slot, StoredReducer};
use proptest::prelude::*;
use serde_json::json;

use super::*;

type Writes = Vec<KeyedWrite<Message>>;

/// A change of a conversation. Of few ids, so that they come twice.
#[derive(Clone, Debug)]
enum Edit {
    Write(Writes),
    Overwrite(Vec<Message>),
    /// A write that is undone.
    Try(Writes),
    Push(Message),
    Insert(usize, Message),
    Replace(usize, Message),
    Swap(usize, usize),
    Truncate(usize),
    /// Changes the fields of a message in place.
    Rename(usize, u8),
    /// The same messages, read from a checkpoint.
    Restore,
    /// The first messages as one, as a summary.
    Shorten(usize, Message),
    /// A clone, which is kept, or comes back in the place of this list.
    Fork,
}

/// One conversation, kept in several ways.
#[derive(Clone, Default)]
struct Conversation {
    vec: Vec<Message>,
    list: Messages,
    followed: Messages,
}

impl Conversation {
    fn edit(&mut self, edit: &Edit) -> Result<(), TestCaseError> {
        let of_vec = edit_one(&mut self.vec, edit);
        let of_list = edit_one(&mut self.list, edit);
        prop_assert_eq!(of_vec, of_list, "the stored bytes, and the size of the whole list");
        change(&mut self.vec, edit);
        match edit {
            Edit::Push(message) => self.list.push(message.clone()),
            _ if is_change(edit) => change(&mut self.list, edit),
            _ => {}
        }
        self.followed.follow(&self.vec);
        Ok(())
    }

    fn agrees(&self) -> Result<(), TestCaseError> {
        for list in [&self.list, &self.followed] {
            prop_assert_eq!(list, &self.vec);
            for id in (0..9).map(id) {
                prop_assert_eq!(list.has_message(&id), self.vec.iter().any(|message| message.id == id));
                let has_call = self.vec.iter().flat_map(Message::tool_uses).any(|call| call.id == id);
                prop_assert_eq!(list.has_call(&id), has_call, "{}", id);
            }
            prop_assert_eq!(complete_list(list), complete(&self.vec));
        }
        Ok(())
    }
}

/// A write to the channel. Returns the bytes of the list before it and of the change, and the size after it.
fn edit_one<T>(value: &mut T, edit: &Edit) -> (Vec<u8>, u64)
where
    T: Clone + serde::Serialize + serde::de::DeserializeOwned + From<Vec<Message>>,
    ById: StoredReducer<T> + Reducer<T, Write = Writes>,
{
    let mut slot = Slot::<T, ById>::default();
    match edit {
        Edit::Write(writes) | Edit::Try(writes) => slot.write(writes.clone()),
        Edit::Overwrite(messages) => slot.overwrite(messages.clone().into()),
        _ => {}
    }
    if let Edit::Try(_) = edit {
        let undo = slot.try_on(value);
        slot.take_off(value, undo);
    }
    let mut delta = DeltaWriter::new(1);
    ById::record(value, delta.channel(0)).unwrap();
    if !matches!(edit, Edit::Try(_)) {
        slot.apply_recorded(value, delta.channel(0)).unwrap();
    }
    (delta.bytes().to_vec(), delta.live())
}

fn is_change(edit: &Edit) -> bool {
    !matches!(edit, Edit::Write(_) | Edit::Overwrite(_) | Edit::Try(_) | Edit::Fork)
}

/// A change of the list itself.
fn change(messages: &mut Vec<Message>, edit: &Edit) {
    let len = messages.len();
    match edit {
        Edit::Push(message) => messages.push(message.clone()),
        Edit::Insert(at, message) if *at <= len => messages.insert(*at, message.clone()),
        Edit::Replace(at, message) if *at < len => messages[*at] = message.clone(),
        Edit::Swap(one, other) if *one < len && *other < len => messages.swap(*one, *other),
        Edit::Truncate(len) => messages.truncate(*len),
        Edit::Rename(at, n) if *at < len => messages[*at].id = id(*n),
        Edit::Restore => {
            let copy = |message: &Message| (**message).clone().into();
            *messages = messages.iter().map(copy).collect();
        }
        Edit::Shorten(count, message) if *count <= len => {
            messages.splice(..*count, [message.clone()]);
        }
        _ => {}
    }
}

fn id(n: u8) -> String {
    format!("id-{n}")
}

fn messages() -> impl Strategy<Value = Message> {
    let call = (0_u8..5).prop_map(|n| Block::from(ToolUse::new(id(n), "tool", json!({}))));
    let result = (0_u8..5).prop_map(|n| Block::from(ToolResult::text(id(n), "done")));
    let content = prop_oneof![
        prop::collection::vec(call, 1..3).prop_map(|calls| (Role::Assistant, calls)),
        prop::collection::vec(result, 1..3).prop_map(|results| (Role::User, results)),
        any::<bool>()
            .prop_map(|user| (if user { Role::User } else { Role::Assistant }, vec![Block::text("text")])),
    ];
    (content, 0_u8..8).prop_map(|((role, content), n)| Message::named(id(n), role, content))
}

fn writes() -> impl Strategy<Value = Writes> {
    let one = prop_oneof![
        4 => messages().prop_map(KeyedWrite::Upsert),
        1 => (0_u8..8).prop_map(|n| KeyedWrite::Remove(id(n))),
    ];
    prop::collection::vec(one, 1..4)
}

/// An answer with a call, and its result.
fn turn() -> impl Strategy<Value = Vec<Edit>> {
    (0_u8..8, 0_u8..5).prop_map(|(n, call)| {
        let answer = Message::named(id(n), Role::Assistant, [ToolUse::new(id(call), "tool", json!({}))]);
        let result = Message::named(id(n + 1), Role::User, [ToolResult::text(id(call), "done")]);
        [answer, result].map(|message| Edit::Write(vec![KeyedWrite::Upsert(message)])).to_vec()
    })
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let at = || 0_usize..12;
    let one = prop_oneof![
        6 => writes().prop_map(Edit::Write),
        1 => prop::collection::vec(messages(), 0..8).prop_map(Edit::Overwrite),
        1 => writes().prop_map(Edit::Try),
        2 => messages().prop_map(Edit::Push),
        1 => (at(), messages()).prop_map(|(at, message)| Edit::Insert(at, message)),
        1 => (at(), messages()).prop_map(|(at, message)| Edit::Replace(at, message)),
        1 => (at(), at()).prop_map(|(one, other)| Edit::Swap(one, other)),
        1 => at().prop_map(Edit::Truncate),
        1 => (at(), 0_u8..8).prop_map(|(at, n)| Edit::Rename(at, n)),
        1 => Just(Edit::Restore),
        1 => (at(), messages()).prop_map(|(count, message)| Edit::Shorten(count, message)),
        2 => Just(Edit::Fork),
    ];
    let steps = prop_oneof![2 => one.prop_map(|edit| vec![edit]), 1 => turn()];
    prop::collection::vec(steps, 1..25).prop_map(|steps| steps.concat())
}

#[test]
fn results_in_the_place_of_an_answer_belong_to_the_turn_before() {
    let answer = |id: &str, call: &str| {
        Message::named(id.to_owned(), Role::Assistant, [ToolUse::new(call, "tool", json!({}))])
    };
    let result = |id: &str, call: &str, text: &str| {
        Message::named(id.to_owned(), Role::User, [ToolResult::text(call, text)])
    };
    let first = [answer("1", "a"), result("2", "a", "one"), answer("3", "b"), result("4", "b", "two")];
    let mut list = Messages::default();
    list.follow(&first);
    assert_eq!(complete_list(&list), first);
    let messages = [&first[..2], &[result("5", "a", "three")]].concat();
    list.follow(&messages);
    assert_eq!(complete_list(&list), complete(&messages));
    assert_eq!(complete(&messages).len(), 2, "the later result of the call counts");

    // The same after a look that ended before that answer, whose call has no result.
    list.follow(&first);
    for last in [3, 2] {
        let messages = [&first[..last], &[result("6", "a", "four")], &first[last + 1..]].concat();
        list.follow(&messages);
        assert_eq!(complete_list(&list), complete(&messages));
    }
}

proptest! {
    // Faults that it was shown to catch: entries that stay in the tables after a truncation, or are not added
    // again; tables that survive a change of the `Vec`, a replaced or a removed message, or of a shared list
    // alone; the first message of an id in the place of the last; calls looked up in the tables only; a turn
    // that is not looked at again; a replaced item whose size is still counted; ids that come twice in an
    // overwriting list; a write that is not undone; a list that is sent as it is.
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_list_is_the_vec_with_the_same_writes(edits in edits()) {
        let mut conversation = Conversation::default();
        let mut fork: Option<Conversation> = None;
        for edit in &edits {
            conversation.edit(edit)?;
            if let Edit::Fork = edit {
                let other = fork.replace(conversation.clone());
                conversation = other.unwrap_or(conversation);
            }
            conversation.agrees()?;
        }
        if let Some(fork) = fork {
            fork.agrees()?;
        }
    }
}

#[test]
fn turns_that_have_ended_are_completed_once() {
    let mut list = Messages::default();
    let add = |list: &mut Messages, turn: u8| {
        let calls = [0, 1].map(|n| ToolUse::new(format!("call-{turn}-{n}"), "search", json!({})));
        let results = calls.clone().map(|call| Message::tool_results([ToolResult::text(call.id, "found")]));
        list.push(Message::new(Role::Assistant, calls));
        list.extend(results);
    };
    (0..3).for_each(|turn| add(&mut list, turn));
    let first = complete_list(&list);
    add(&mut list, 3);
    let second = complete_list(&list);
    assert_eq!(second, complete(&list));
    let kept = first.iter().zip(&second).take_while(|(one, other)| one.is_shared_with(other)).count();
    assert_eq!((first.len(), kept, second.len()), (6, 6, 8), "a turn that was whole stays");
    list.push(Message::tool_results([ToolResult::text("call-3-0", "found later")]));
    add(&mut list, 4);
    let third = complete_list(&list);
    assert_eq!(third, complete(&list));
    let kept = second.iter().zip(&third).take_while(|(one, other)| one.is_shared_with(other)).count();
    assert_eq!((kept, third.len()), (7, 10), "a result that came after the request changes its turn");
}

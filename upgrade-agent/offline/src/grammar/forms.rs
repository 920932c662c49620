//! The forms of clauses.

use super::Form;
use super::Group::{self, Corrections, Elsewhere, Orders, Questions, Students, Talk};

const fn form(group: Group, act: &'static str, pattern: &'static str, example: &'static str) -> Form {
    Form { act, pattern, example, group, asked: "" }
}

/// A form that only answers the question for a parameter.
const fn answer(asked: &'static str, pattern: &'static str, example: &'static str) -> Form {
    Form { act: "answer", pattern, example, group: Corrections, asked }
}

pub(crate) const FORMS: &[Form] = &[
    // Questions about words and about what was done.
    form(Questions, "explain", "(what (is | are | 's) | what does | what do you mean by | explain | define | describe | tell me about | what about)
        [the difference between | the meaning of] [a | an | the] <term> [mean | do | good for]", "what is a decision point?"),
    form(Questions, "explain", "(what (is | are | 's) the | explain the) difference between [a | an | the] <term> and [a | an | the] <term>",
        "what is the difference between a site and a target?"),
    form(Questions, "report", "what (have | did) (we | you) (accomplished | done | do | accomplish | change) [so far | today] | what (changed | happened) [so far]
        | [show me] the (log | report) | sum up what we did | did we do anything", "what have we accomplished?"),
    form(Questions, "schema", "(what | which) [parameters | fields | information | arguments | inputs] (do | does | are) (i | we | required | needed)
        [need | needed] to {action}", "what parameters are required to create an experiment?"),
    form(Questions, "howto", "how (do | can | could | would | does | should) (i | we | one | you) {action}", "how do I delete an experiment?"),
    form(Questions, "howto", "what (happens | would happen | will happen) if (i | we) {action} | what does it mean to {action}",
        "what happens if I stop Hints?"),
    // Questions about the server.
    form(Questions, "contexts", "(which | what) [app] (contexts | apps) (are there | do we have | exist | can i use | are available)
        | {show} [the | all] [the] [available] [app] (contexts | apps)", "which contexts are there?"),
    form(Questions, "conditions", "(which | what) {conditions} (are available for | does | do | are there in | exist in | are there for) [the] <context>
        [offer | have | context] | {show} [the] {conditions} (of | for | in) [the] [context] <context> [context]", "what conditions are available for assign-prog?"),
    form(Questions, "conditions", "(which | what) {conditions} (does | do) {exp} (have | compare) | {show} the {conditions} of {exp}
        | what are the {conditions} (of | in) {exp}", "which conditions does Hints have?"),
    form(Questions, "points", "(which | what) {points} (are available for | does | do | are there in | exist in | are there for) [the] <context>
        [offer | have | context] | {show} [the] {points} (of | for | in) [the] [context] <context> [context]", "which decision points exist in mathstream?"),
    form(Questions, "points", "(which | what) {points} (does | do) {exp} (have | use) | {show} the {points} of {exp} | what are the {points} (of | in) {exp}",
        "what are the decision points of Hints?"),
    form(Questions, "groups", "(which | what) (group types | groups | kinds of groups) (are available for | does | do | are there in | exist in | are there for) [the] <context>
        [offer | have | context] | [{show}] [the] group types (of | for | in) [the] [context] <context> [context]", "which group types are there in assign-prog?"),
    form(Questions, "experiments", "{show} [all] [the | my | our] [<status>] {nouns} [{filters}]", "list the experiments in assign-prog tagged pilot"),
    form(Questions, "experiments", "(which | what) {nouns} (do we have | are there | exist | have we) [{filters}] | are there any [<status>] {nouns} [{filters}]
        | how many [<status>] {nouns} (are there | do we have) [{filters}]", "which experiments are there?"),
    form(Questions, "experiments", "(which | what) [{nouns}] {filters} | (is | are) [there] (anything | something | any) <status>",
        "which experiments are enrolling or paused?"),
    form(Questions, "compare", "compare {exp} (and | with | to) {exp} | what is the difference between {exp} and {exp} | how do {exp} and {exp} differ",
        "compare Hints and Boost"),
    form(Questions, "details", "(tell me about | show [me] | describe | details of | what do you know about | show [me] the details of | look at) {exp}
        | what does {exp} look like | {show} the (details | settings) of {exp}", "tell me about Hints"),
    form(Questions, "details", "(who | which students | which users | what) (is | are) (excluded from | included in) {exp}
        | {show} the (exclusion | inclusion) list of {exp}", "who is excluded from Hints?"),
    form(Questions, "status_of", "(what is | what 's | {show}) the (status | state) [of {exp}] | what 's {whose} status | what is {whose} status | status of {exp}
        | how is {exp} doing | has {exp} (started | ended | been started)", "what's the status of Hints?"),
    form(Questions, "status_of", "is {exp} [still | already] <asked:status>", "is Hints running?"),
    form(Questions, "enrollment", "how many ({users}) (are | take part | participate) [enrolled] in {exp} | who is enrolled in {exp}
        | {show} the (enrolment | enrollment) [numbers] of {exp} | (enrolment | enrollment) of {exp}", "how many students are in Hints?"),
    form(Questions, "health", "is [the] (server | upgrade) (up | alive | running | ok | there) | check [the] [upgrade] health [of upgrade]
        | (which | what) version (is | does) [the] (server | upgrade) [have | run | running] | are you connected [to upgrade]", "is the server up?"),
    form(Questions, "and", "what about [the] {exp} | and {exp}", "what about Hints?"),
    form(Questions, "and", "and (in | for) [the] [context] <context>", "and in mathstream?"),
    // Orders about experiments.
    form(Orders, "set_status", "{start} =to:enrolling ({exp} | [{some}]) [{force}]", "start Hints"),
    form(Orders, "set_status", "{stop} =to:enrollmentComplete ({exp} | [{some}]) [{force}] | put {exp} on hold =to:enrollmentComplete", "stop Hints"),
    form(Orders, "set_status", "{cancel} =to:cancelled ({exp} | {some}) [{force}]", "cancel Hints"),
    form(Orders, "set_status", "{archive} =to:archived ({exp} | [{some}]) [{force}]", "archive Hints"),
    form(Orders, "set_status", "({set} | move | put) {exp} to <status> [{force}] | {set} the (status | state) of {exp} to <status> [{force}]
        | {set} {whose} (status | state) to <status> [{force}] | {exp} should be <status>", "set the status of Hints to preview"),
    form(Orders, "delete", "{delete} ({exp} | {some})", "delete Hints"),
    form(Orders, "create", "{create} [a | an | the | another =anew:true] [new] [group =unit:group] {noun} [[{called}] <name>] [[with] ,] {designs}
        | new {noun} [{called}] <name> {designs} | create it {designs} | create <name> in [the] [context] <context> {designs}",
        "create experiment Boost in assign-prog at SelectSection / absolute_value_plot_equality, 50/50, for everybody"),
    form(Orders, "create", "create [an] {noun} with {context_nth} context {designs} | create [an] {noun} with <context>
        | start a new {noun} [{called} <name>] {designs} | run (a | an) {noun} in [the] [context] <context> {designs}",
        "create experiment with first context"),
    form(Orders, "create", "[(create | import) [this] {noun} [:]] <json>", "{\"name\": \"Boost\", \"context\": [\"assign-prog\"]}"),
    form(Orders, "copy", "(copy | duplicate | clone) {exp} [(as | to) <name>] [but] {designs} | (make | create) a copy of {exp} [{called} <name>] [but] {designs}
        | (create | make) [an] {noun} [{called}] <name> (like | as) {exp} [but] {designs}", "copy Hints as Boost but with weights 70/30"),
    form(Orders, "update", "rename ({exp} | {some}) to <name> | {set} the name of {exp} to <name> | {set} {whose} name to <name> | (call | name) {that} <name>",
        "rename Hints to Tips"),
    form(Orders, "update", "rename ({exp} | {some}) =ask:name | {set} the name of {exp} =ask:name", "rename Hints"),
    form(Orders, "update", "{set} the (weights | split | {conditions}) of {exp} [to | :] <weights> [{force}] | {set} {whose} (weights | split | {conditions}) to <weights> [{force}]
        | ({set} | give) {exp} [to | :] <weights> [{force}] | split {exp} <weights> | set {exp} weights <weights> | (set | give | change) <weights> in {exp} | set weights of {exp} to <weights>", "set the weights of Hints to 70/30"),
    form(Orders, "update", "{set} {whose} (weights | {conditions}) =ask:conditions | {set} the (weights | {conditions}) of {exp} =ask:conditions",
        "change the weights of Hints"),
    form(Orders, "update", "({set} | give) the description of {exp} {to} <description:name> | add the description <description:name> to {exp}
        | give {exp} (the | a) description [:] <description:name> | give {exp} a description : <description:value> | {set} {whose} description to <description:name>", "set the description of Hints to \"a pilot\""),
    form(Orders, "update", "{set} the description of {exp} =ask:description | {set} {whose} description =ask:description", "change the description of Hints"),
    form(Orders, "update", "add the (tag | tags) <add_tags:codes> to {exp} | add <add_tags:codes> to the tags of {exp} | tag {exp} (with | as) <add_tags:codes>",
        "add the tag pilot to Hints"),
    form(Orders, "update", "{delete} the (tag | tags) <remove_tags:codes> from {exp}", "remove the tag pilot from Hints"),
    form(Orders, "update", "{set} the tags of {exp} to <tags:codes>", "set the tags of Hints to algebra, pilot"),
    form(Orders, "update", "{set} the filter mode of {exp} to {mode} | {set} {whose} filter mode to {mode}", "set the filter mode of Hints to includeAll"),
    form(Orders, "update", "include {everybody} =filter:includeAll [{in_exp}] | make {exp} take {everybody} =filter:includeAll | take {everybody} in =filter:includeAll",
        "include everybody in Hints"),
    form(Orders, "update", "{set} the consistency rule of {exp} to {consistency} | {set} {whose} consistency rule to {consistency}",
        "set the consistency rule of Hints to individual"),
    form(Orders, "update", "{set} the (post [experiment] rule | post-experiment rule) of {exp} to {post}
        | {set} {whose} (post [experiment] rule | post-experiment rule) to {post}", "set the post-experiment rule of Hints to assign variant"),
    form(Orders, "update", "{set} the context of {exp} to <context>", "change the context of Hints to mathstream"),
    form(Orders, "update", "add the [second] decision point {add_place} to {exp} | add a [second] decision point {add_place} to {exp}",
        "add the decision point workspace / analyzing_step_functions to Hints"),
    form(Orders, "update", "{delete} the decision point {remove_place} from {exp}", "remove the decision point workspace / analyzing_step_functions from Hints"),
    form(Orders, "update", "{set} the decision point of {exp} to {place}", "change the decision point of Hints to workspace / analyzing_step_functions"),
    form(Orders, "update", "exclude {excludeds} [{in_exp}] | (block | blacklist) {excludeds} {in_exp} | keep {excludeds} out of {exp}
        | (put | add) {excludeds} (to | on) the exclusion list of {exp} | [the] [{user}] <exclude:id> should not be in {exp}", "exclude user bob from Hints"),
    form(Orders, "update", "[only] include {includeds} [{in_exp}] | whitelist {includeds} {in_exp}
        | (put | add) {includeds} (to | on) the inclusion list of {exp} | [the] [{user}] <include:id> (must | should) be in {exp}", "include class c1 in Hints"),
    form(Orders, "update", "(take | remove) <unexclude:ids> (off | from) the exclusion list [of {exp}]", "take bob off the exclusion list of Hints"),
    form(Orders, "update", "(take | remove) <uninclude:ids> (off | from) the inclusion list [of {exp}]", "take ann off the inclusion list of Hints"),
    form(Orders, "update", "{update} ({exp} | [{some}])", "change Hints"),
    // Students.
    form(Students, "init", "{init} [the] {user} <user:id> [{groups}] | {init} <user:id> [{groups}] | {init} a {user}", "initialize user ada in class c1"),
    form(Students, "assign", "(which | what) {conditions} (does | would | will) [{user}] <user:id> (get | see) [in (<context> | {named})]
        | what (does | would | will) [{user}] <user:id> (get | see) [in (<context> | {named})]
        | get the assignments of [{user}] <user:id> [in <context>]", "which condition does user ada get in assign-prog?"),
    form(Students, "mark", "mark {place} for [{user}] <user:id> | mark a decision point for [{user}] <user:id> | for [{user}] <user:id> , mark {place}
        | mark a decision point", "mark SelectSection / absolute_value_plot_equality for user ada"),
    form(Students, "visit", "(let | have) [{user}] <user:id> visit [the] [decision point] ({place} | a place) [in <context>]
        | {user} <user:id> (goes | comes) to {place} [in <context>] | visit {place} as [{user}] <user:id> [in <context>]",
        "let student ada visit SelectSection / absolute_value_plot_equality in assign-prog"),
    form(Students, "balance", "[{count} [,]] {test} [the | a] [live =mode:live | offline =mode:offline] [condition] ({balance} [test] | balance test) ({test_part})* | {test} [the] balance",
        "test the balance of Hints with 200 users"),
    form(Students, "balance", "is {exp} balanced | (does | will) {exp} split [the] [{users}] evenly | is the split of {exp} (fair | even)", "is Hints balanced?"),
    form(Students, "journey", "(simulate | play | run) [a | the] [user] journey [(of | with | for) {who}] ({journey_part})* [{steps}]
        | simulate ({count}) ({journey_part})* [{steps}] | (let | send) {count} [walk | go] through {exp}",
        "simulate a journey of student ada through Hints: visit, then pause it, then visit again"),
    // Answers and corrections.
    form(Corrections, "yes", "yes | yeah | yep | yup | y | ok | okay | sure | certainly | of course | confirm | do it | go ahead | yes please", "yes"),
    form(Corrections, "no", "no | nope | n | cancel | abort | never mind | nevermind | forget it | no (thanks | thank you) | don't", "never mind"),
    form(Corrections, "insist", "force it | do it anyway | anyway | i insist | force | do it by force", "do it anyway"),
    form(Corrections, "refuse", "{dont} ({start} | {stop} | {delete} | {create} | {cancel} | {archive} | {update} | rename | exclude) ({exp} | [{some}])", "don't start Hints"),
    form(Corrections, "every", "({start} | {stop} | {delete} | {cancel} | {archive}) {every}", "delete all experiments"),
    form(Corrections, "reference", "{nth}", "the second one"),
    form(Corrections, "count", "(use | with | make it | for) <number> [{users}]", "use 300 users"),
    form(Corrections, "weights", "<weights>", "70/30"),
    form(Corrections, "update", "the name should be <name> | name : <name>", "no, the name should be Tips"),
    form(Corrections, "update", "description : <description:value> | the description should be <description:value>", "description: for the pilot"),
    form(Corrections, "update", "(the (weights | split) should be | weights :) <weights>", "the weights should be 60/40"),
    form(Corrections, "set_status", "<status> | make it <status> | it should be <status>", "cancelled instead"),
    form(Corrections, "mode", "[i want] [a | the] live [test] =mode:live [{count}] | [i want] [an | a] offline [test] =mode:offline [{count}]", "I want a live test"),
    // Answers to questions.
    answer("name", "[at | on] <site:code> / <target:code> {designs}", "SelectSection / absolute_value_plot_equality"),
    answer("name", "[(call | name) it | it is called | its name is | name :] <name>", "Tips"),
    answer("description", "<description:value>", "for the pilot"),
    answer("user_id", "[(user | student)] <user:id>", "ada"),
    answer("context", "[let 's use | use | take | in | the] [the] <context> [context | app] {designs} | {context_nth_answer}", "assign-prog"),
    answer("decision_points", "[at | on | the site is] [the] {place} {designs} | [at | the site is] <site:code> | the target is <target:code>
        | the site is <site:code> and the target [is] <target:code>", "SelectSection / absolute_value_plot_equality"),
    answer("decision_point", "[at | on] {place} | [at] <site:code> | the target is <target:code>", "SelectSection / absolute_value_plot_equality"),
    answer("site", "[at] <site:code>", "workspace"),
    answer("target", "<target:code>", "analyzing_step_functions"),
    answer("conditions", "[with | split them] <weights> {designs} | [with | split them] <codes>", "control 30, variant 70"),
    answer("experiment_id", "{nth} | {named}", "Hints"),
    answer("status", "<status> | {start} =to:enrolling | {stop} =to:enrollmentComplete | {cancel} =to:cancelled", "enrolling"),
    answer("group_type", "<group_type:code>", "classId"),
    answer("steps", "{steps}", "visit, then pause it, then visit again"),
    answer("change", "{everybody} =filter:includeAll | {mode}", "everybody"),
    // Talk.
    form(Talk, "greeting", "hi [there] | hello [there] | hey | good (morning | afternoon | evening) | how are you [doing]", "hello"),
    form(Talk, "thanks", "thanks | thank you | thx", "thanks!"),
    form(Talk, "farewell", "bye | goodbye | good bye | see you [later] | quit | exit", "bye"),
    form(Talk, "help", "help [me] | what can you (do | say) | who are you | what is your name | how can you help me | what can i (say | ask)", "what can you say?"),
    form(Talk, "undo", "undo (it | that | the last change) | revert (it | that) | take that back | roll back [the (rename | change | last change)]", "undo that"),
    // What the agent cannot do, or UpGrade cannot tell.
    form(Elsewhere, "cannot", "what is the p-value =topic:p_value (of | for | in) {exp} | is the difference in {exp} significant =topic:p_value
        | is {exp} significant =topic:p_value | which condition (is better | wins) in {exp} =topic:p_value", "what is the p-value of Hints?"),
    form(Elsewhere, "cannot", "why (was | is | did) {exp} =topic:reason (<status> | created | deleted | stop | end) | who (started | stopped | paused | created | deleted) {exp} =topic:reason",
        "why was Hints paused?"),
    form(Elsewhere, "beyond", "({create} | {delete} | {show} | {update} | how do i create) =topic:segments [a | an | the | all | my] (segment | segments) [<more:rest>]", "create a segment"),
    form(Elsewhere, "beyond", "({create} | {delete} | {show} | {update} | turn on | turn off) =topic:flags [a | an | the | all] [feature] (flag | flags) [<more:rest>]", "turn on the feature flag dark-mode"),
    form(Elsewhere, "beyond", "({create} | {delete} | {show} | {update}) =topic:metrics [a | an | the | all] (metric | metrics | query | queries) [<more:rest>]", "show me the metrics of Hints"),
    form(Elsewhere, "beyond", "export {anyexp} =topic:files [<more:rest>] | import {anyexp} =topic:files [<more:rest>]", "export Hints as csv"),
    form(Elsewhere, "beyond", "({update} | set | {create} | {delete}) [a | the] (payload | payloads) =topic:payloads [<more:rest>]", "change the payload of variant in Hints to \"x\""),
    form(Elsewhere, "beyond", "schedule {anyexp} =topic:schedules [<more:rest>]", "schedule Hints to start on 2027-01-01"),
    form(Elsewhere, "beyond", "({create} | {delete} | {show}) [a | the] preview (user | users) =topic:previews [<more:rest>]", "add a preview user to Hints"),
    form(Elsewhere, "beyond", "({stop} | {start}) the (server | simulator | database) =topic:server", "stop the server"),
    form(Elsewhere, "beyond", "{delete} [the] ({user}) <user:id> =topic:students", "delete user bob"),
    form(Elsewhere, "beyond", "({create} | {delete} | rename) [a | the] context =topic:contexts [<more:rest>]", "delete context mathstream"),
    form(Elsewhere, "beyond", "{delete} (this | the) (conversation | chat | thread) =topic:conversations", "delete this conversation"),
    form(Elsewhere, "beyond", "{create} a (factorial | stratified | within-subjects | within-subject | within (subject | subjects) | adaptive) =topic:designs {noun} [{called} <name>] {designs}",
        "create a factorial experiment called Boost"),
];

//! The classes that the forms share: words of one meaning, references to experiments, parameters.

/// Courtesy and joiners: read between clauses, and meaning nothing.
pub(super) const FILLER: &str = "
    , | ; | . | ! | ? | … | - | :
    | please | pls | plz | kindly | thanks | thx | thank you [(very | so) much] | ty | sorry | well | ok [then] | okay | k | sure
    | hi [there] | hello [there] | hey [there] | good (morning | afternoon | evening) | dear
    | (can | could | would | will) (you | u | we) [please | pls] | would you mind | (would | is) it [be] possible to
    | i 'd like [you] to | i'd like [you] to | i would like [you] to | i want [you] to | i need [you] to | we need to | we want to
    | we are ready to | i wish to | let 's | lets | let us | go ahead and | go on and
    | now | just | right (now | away) | asap | as soon as possible | at the moment | at once | immediately | for me | for us | again | for now
    | and | then | but | also | too | as well | after that | afterwards | next | finally | first
    | no , | no | wait | actually | hmm | hm | oh | rather | instead";

/// Classes by name.
pub(super) const CLASSES: &[(&str, &str)] = &[
    // Nouns.
    ("noun", "experiment | study | trial | test | a/b test | ab test | split test"),
    ("nouns", "experiments | studies | trials | tests | experiment | ones"),
    ("users", "users | students | learners | pupils | people | user | student | learner | pupil"),
    ("user", "user | student | learner | pupil"),
    ("art", "the | my | our"),
    ("called", "called | named | with the name | with the id | id | by the name of"),
    ("points", "decision (points | point) | (sites | site) [and (targets | target)] | targets | places"),
    ("conditions", "conditions | condition | variants | arms | treatments"),
    ("to", "to | as | : | be"),
    ("is", "is | : | should be | to"),
    // Verbs.
    ("start", "start | starting | launch | launching | begin | activate | activating | resume | resuming | run | running
        | kick off | turn on | switch on | restart | unpause | enable | continue"),
    ("stop", "stop | stopping | pause | pausing | halt | suspend | complete | completing | finish | turn off | switch off | disable"),
    ("cancel", "cancel | cancelling | abort | aborting | end | ending | call off | terminate"),
    ("archive", "archive | archiving"),
    ("delete", "delete | deleting | remove | removing | erase | erasing | get rid of | permanently delete | discard"),
    ("create", "create | creating | make | making | set up | build | add"),
    ("update", "update | updating | change | changing | modify | edit | adjust"),
    ("set", "set | change | update | modify | adjust | make | switch"),
    ("show", "show [me] | list | display | give me | tell me | see | print | get"),
    ("test", "test | check | verify | run | do | try | start"),
    ("init", "initialize | initialise | init | initializing | initialising | register | enroll"),
    // References to experiments.
    ("that", "it =experiment:that | this one =experiment:that | that one =experiment:that
        | (this | that | the same) {noun} =experiment:that"),
    ("ordinal", "first =experiment:first | second =experiment:second | third =experiment:third | fourth =experiment:fourth
        | fifth =experiment:fifth | sixth =experiment:sixth | seventh =experiment:seventh | eighth =experiment:eighth
        | ninth =experiment:ninth | tenth =experiment:tenth | last =experiment:last | other =experiment:other"),
    ("nth", "[the] {ordinal} [one | {noun}]"),
    ("named", "[{art}] [{noun} [{called}]] <experiment> [{noun}] | {art} (inactive | running | paused) {noun} [{called}] <experiment>"),
    ("exp", "{that} | {nth} | {named}"),
    ("whose", "its =experiment:that | {exp} 's"),
    ("some", "(a | an | the | one | any | some | my) [inactive | running | paused] {noun}"),
    ("every", "(all | every | everything | all of them | all the | each) [the] [my] [running | inactive | paused] [experiments | experiment | studies | of them]"),
    // Who takes part.
    ("everybody", "everybody | everyone | all [the] ({users}) | anybody | anyone"),
    ("excluded", "([the] ({users}) <exclude:ids> | [the] <exclude_group_type:group_type> <exclude_group:ids> | <exclude:ids>)"),
    ("excludeds", "{excluded} ((, [and] | and) ([the] ({users}) <exclude:ids> | [the] <exclude_group_type:group_type> <exclude_group:ids>))*"),
    ("included", "([the] ({users}) <include:ids> | [the] <include_group_type:group_type> <include_group:ids> | <include:ids>)"),
    ("includeds", "{included} ((, [and] | and) ([the] ({users}) <include:ids> | [the] <include_group_type:group_type> <include_group:ids>))*"),
    ("in_exp", "(from | in | for | of | on) {exp}"),
    // Decision points.
    ("place", "[site] <site:code> (/ | , | and | with) [the] [target] <target:code> | the site <site:code> [,] and the target <target:code>
        | [the] site <site:code> [,] [and] [the] target <target:code> | <target:code> at <site:code> | <site:code> <target:code>"),
    ("add_place", "<add_site:code> (/ | , | and) [target] <add_target:code>"),
    ("remove_place", "<remove_site:code> (/ | , | and) [target] <remove_target:code>"),
    ("step_place", "<step_site:code> (/ | , | and) [target] <step_target:code>"),
    // Parameters of a design, each with the words that lead to it.
    ("designs", "([, | ;] [and | but] {design})*"),
    ("design", "(in | within) [the] [context | app] <context> [context | app]
        | [with] [the] context [{is}] <context>
        | in [the] {context_nth} context | with [the] {context_nth} context | with <context> as context
        | (at | on) [the] [decision point | point | site] {place} | decision (point | points) [{is}] {place}
        | site <site:code> [, | and] [target <target:code>]
        | [with | weighted | and] [the] [{conditions} | weights] [{is}] <weights>
        | (with [the] {conditions} | comparing | {conditions} :) <codes>
        | for {everybody} =filter:includeAll | {everybody} [can] (takes | take | participate | participates) [part] =filter:includeAll
        | include {everybody} =filter:includeAll
        | [with] [the] filter mode [{is}] {mode}
        | per =unit:group <group_type> | (assigned | assignment) by (group | groups) =unit:group
        | [with] [the] (unit [of assignment] | assignment unit) [{is}] (group =unit:group [<group_type>] | individual =unit:individual)
        | [with] [the] group type [{is}] <group_type:code>
        | [with] [the | a] description [{is}] <description:name> | description : <description:value> | described as <description:name>
        | [with] [the] (tag | tags) [{is}] <tags:codes> | tagged [with | as] <tags:codes>
        | [with] [the] consistency [rule] [{is}] {consistency} | {consistency} consistency
        | [with] [the] (post [experiment] rule | post-experiment rule) [{is}] {post}
        | exclude {excludeds} | [only] include {includeds}
        | exclude if reached =if_reached:true"),
    ("context_nth", "first =context_at:first | second =context_at:second | third =context_at:third | last =context_at:last"),
    ("context_nth_answer", "[the] {context_nth} [one]"),
    ("post", "continue =post:continue | assign =post:assign [condition] <post_code:code>"),
    ("consistency", "individual =consistency:individual | group =consistency:group | experiment =consistency:experiment"),
    ("mode", "includeall =filter:includeAll | include all =filter:includeAll | excludeall =filter:excludeAll | exclude all =filter:excludeAll"),
    ("force", "anyway =force:true | by force =force:true | regardless =force:true | even so =force:true | force it =force:true"),
    // Students.
    ("count", "[of | for | using | use | with | ,] <number> [simulated | test | virtual | artificial | more] {users}"),
    ("groups", "(in | of | from) <group_type> <group:id>"),
    ("balance", "balance | split | randomization | randomisation | distribution | weights"),
    ("test_part", "[, | and] {count} | [, | and] {groups} | at {place} | offline =mode:offline | live =mode:live | as a live test =mode:live
        | (of | for | in) {exp}"),
    ("journey_part", "[, | and] {count} | [, | and] {groups} | (through | in | on) {exp} | in [the] [context] <context> | {force}"),
    ("who", "[the] {users} <users:ids> | {count} | <users:ids>"),
    ("steps", "[:] {step} ((, | and | ;)* [then] {step})*"),
    ("step", "visit =step:visit [{step_place} | it] [again] | (pause | stop) =step:enrollmentComplete [it] | (start | resume) =step:enrolling [it]
        | cancel =step:cancelled [it] | assign =step:assign [them]
        | (switch | move | go) to =step:group <step_group_type:group_type> <step_group:id>
        | set the status to =step:status <step_status:status>"),
    // Filters of lists.
    ("filters", "({filter} ([,] (and | but | or =or:or)* {filter})*)"),
    ("filter", "[that | which | who] ([are | is | were | have been] [not =not:not] | (aren't | isn't) =not:not) {property}"),
    ("property", "<status> | [there] (in | from | of) [the] [context | app] <context> [context | app]
        | tagged [with | as] <tag:code> | with [the] tag <tag:code>
        | [made | created] by [the] [author | user] <author:id>
        | created (after | since) <after:date> | created before <before:date> | created on <on:date> | (after | since) <after:date> | before <before:date>
        | (called | named) [like] <name> | (have | with) <name> in (the | its | their) (name | names)"),
    // Negation and actions in general.
    ("dont", "do not [ever] | don't [ever] | dont | never | i (do not | don't) want [you] to | you (should not | shouldn't | must not)
        | i would rather not | i'd rather not | please (do not | don't)"),
    ("anyexp", "(a | an | the | any | one | some | my) [cancelled | running | paused | new | inactive] {noun} | {nouns} | {exp}"),
    ("action", "({start} | starting) {anyexp} =action:start | ({stop}) {anyexp} =action:stop | {cancel} {anyexp} =action:cancel
        | {archive} {anyexp} =action:archive | {delete} {anyexp} =action:delete_experiment
        | ({create} | set up) {anyexp} =action:create_experiment
        | ({update} | rename) {anyexp} =action:update_experiment | {update} the status [of {anyexp}] =action:update_experiment_status
        | {init} [a | an | the] ({user}) =action:init_experiment_user | mark [a | the] decision point =action:mark_decision_point
        | test [the] [condition] balance =action:test_condition_balance | visit [a | the] decision point =action:visit_decision_point
        | simulate [a | the] [user] journey =action:simulate_user_journey"),
];

//! Words and phrases of an order that carry no information.

/// Words of an order that carry no information. Limits of an order (`not`, `if`, `until`, `only`, a time)
/// must not be here.
pub(super) const GRAMMAR: &str = "a an the this that these those it its it's he she they them him her his their there here i me my mine myself \
    we us our ours you your yours one ones is are am was were be been being do does did done have has had having can could will \
    would shall should may might ought let to of in on at for from with into onto as and or so also too just now right up please pls \
    plz kindly thanks thank thx cheers ok okay yes yeah yep yup hi hello hey oh well get make put set take bring give go going come \
    turn move use using keep want wants wanted wanna like love need needs wish prefer called named titled call which who whom whose \
    what all-right alright great good nice cool perfect fine again now immediately asap quickly really actually simply basically \
    instead rather down out off away back same about today currently ahead sorry hm hmm um uh er ah it'd gonna live happen happens \
    i'd look see thing things stuff kind sort yourself agent assistant bot dear everyone's et al folks guys team id ids still \
    going gone getting finally kindly then some u ur ya k kk ty thnx tnx";

/// Phrases without information; `|` separates alternatives.
pub(super) const PHRASES: &[&str] = &[
    "no longer need|needs|needed|want|wanted|used",
    "do|does not need|want it|this|that",
    "do not need|want",
    "any longer|more",
    "anymore",
    "changed|change my|our mind",
    "as soon as possible",
    "as soon as you can",
    "straight away",
    "right away",
    "at once",
    "this minute|moment|instant",
    "if possible",
    "if you can|could|please|will|would|may|want|like",
    "if you do not mind",
    "if it|that is ok|okay|possible|fine|alright",
    "when you can",
    "when you get|have a chance|moment|minute",
    "when you have time|a",
    "whenever you can|like|want|have",
    "whenever you get a chance|moment|minute",
    "it|this|that is urgent|important",
    "urgent|urgently",
    "i said|meant|mean|told you",
    "i|we said|meant|mean",
    "we are done|finished|through with|here|now",
    "we are done|finished|through",
    "our|the|my|this pilot|study|experiment|trial|test|one is over|done|finished|complete|completed",
    "it is over|done|finished|complete|completed|broken|useless|obsolete",
    "we have enough data|students|results",
    "is|are|was over|done|finished|broken|complete|completed|useless|obsolete|wrong",
    "i made|did a mistake",
    "already",
    "not needed any more|longer",
    "not needed anymore|now",
    "when you are ready",
    "would|do you mind",
    "you mind",
    "mind",
    "be so kind|good",
    "be able",
    "are you able",
    "possible to",
    "is it possible",
    "why not",
    "how about",
    "make|be sure",
    "see to it",
    "feel free",
    "by the way",
    "go ahead",
    "time to|for",
    "it is time",
    "ready",
    "long enough",
    "run its course",
    "good morning|afternoon|evening|day",
    "the experiment|test|study|trial|one that|which i|we|you just made|created|built|added",
    "the experiment|test|study|trial|one i|we|you just made|created|built|added",
    "the experiment|test|study|trial|one that|which i|we|you made|created|built|added",
    "the experiment|test|study|trial|one i|we|you made|created|built|added",
    "we|i|you just made|created|built|added",
    "we|i|you just talked|spoke about|of",
    "we|i|you talked|spoke about|of",
    "what you are told",
    "for good",
    "last one|experiment|test|study",
    "latest|previous|above|recent|former|said one|experiment|test|study",
    "once more",
    "for the moment|time being",
    "for now",
    "help me",
    "i think|guess|believe|suppose",
    "a bit",
    "nothing else",
    "that is all|it",
    "no problem",
    "i would|do appreciate it",
    "real quick",
    "in upgrade",
    "on|in upgrade",
    "upgrade",
    "but",
];

/// Phrases about the audience of a simulation.
pub(super) const SIMULATIONS: &str = "really actually truly indeed true correct accurate hold holds give gives treat treats yield yields produce \
    produces deliver come comes end ends work works divide divides split splits spread assign assigns assigned distribute \
    distributes distributed distribution get gets got sure certain verify check know whether confirm prove wonder doubt alike \
    evenly equally even equal proportionally fair fairly unfair skewed biased lopsided uneven balanced unbalanced imbalanced \
    balancing chi-square chi-squared chi square statistical randomization randomisation random randomly randomized randomizes \
    respected honoured honored allocation allocated divided sanity quick dry run live offline real server theoretically \
    theoretical compute calculate locally paper both groups all everyone everybody same every how what happens happen happened if \
    when would will simulated simulation simulate virtual artificial fake pretend test tests testing try trying tried out evaluate \
    assess validate verfiy fare fall land join joined enter play participate receive experience experiences through thru walk walks \
    walking going goes pass send sends visit visits visiting arrives arrive lands turns reach reaches enters opens open see sees user \
    users student students learner learners pupil pupils kid kids children people persons participants test-users journey \
    journeys walkthrough eyes shoes perspective viewpoint view role impersonate act behave pretending pose log guide lead direct \
    each other them their conditions condition weights weight experiment experiments expected ones many much number touching \
    changing writing enrolling without anything anybody again where place places somewhere decision point points site target \
    look back return returns returning while new some";

/// The same for a visit.
pub(super) const VISITS: &str = "visits visit visiting arrives arrive lands goes reach reaches enters opens see sees simulate simulated simulation \
    pretend pretending act acting behave impersonate walk walks send sends bring guide lead log decision point points site target where \
    place places somewhere test role eyes shoes through";

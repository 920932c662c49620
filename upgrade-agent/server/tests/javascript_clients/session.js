// What an application does with UpGrade's client library, in Node and in a page alike. Every line says what
// the library promises its caller; a promise that is not kept is told as an error.
//
// `student` and `site` belong to one play, so that plays on one server do not meet.
async function session(Client, { host, version, student, site, conditions, factors }) {
  const told = [];
  const expect = (what, met, got) => {
    if (!met) throw new Error(`${what}: ${JSON.stringify(got)}`);
    told.push(what);
  };
  const client = new Client(student, host, 'assign-prog', { clientSessionId: 'a-session' });

  const user = await client.init({ classId: ['1', '2'] }, { classId: '1' });
  expect('init gives the student back', user.id === student && user.group.classId.length === 2, user);

  const all = await client.getAllExperimentConditions();
  const ours = all.filter((one) => one.site === site).map((one) => one.target).sort();
  expect('all decision points are listed', ours.join() === 'fact,plain', ours);

  const plain = await client.getDecisionPointAssignment(site, 'plain');
  const condition = plain.getCondition();
  expect('a condition is assigned', conditions.includes(condition), condition);
  expect('it has its payload', plain.getPayload()?.value === `p-${condition}`, plain.getPayload());
  expect('it is of a simple experiment', plain.getExperimentType() === 'Simple', plain.getExperimentType());

  const fact = await client.getDecisionPointAssignment(site, 'fact');
  expect('factors are named', fact.factors.slice().sort().join() === Object.keys(factors).sort().join(), fact.factors);
  for (const factor of fact.factors) {
    const level = fact.getFactorLevel(factor);
    expect(`${factor} has a level`, factors[factor].includes(level), level);
    expect(`${factor} has its payload`, fact.getFactorPayload(factor)?.value === `${level}-p`, fact.getFactorPayload(factor));
  }

  const marked = await plain.markDecisionPoint('condition applied');
  expect('a visit is marked', marked.userId === student && marked.site === site && marked.target === 'plain', marked);
  const failed = await client.markDecisionPoint(site, 'fact', null, 'condition not applied', undefined, 'no room');
  expect('a failed visit is marked', failed.target === 'fact', failed);

  const again = new Client(student, host, 'assign-prog', { clientSessionId: 'another-session' });
  const kept = (await again.getDecisionPointAssignment(site, 'plain')).getCondition();
  expect('the condition stays', kept === condition, kept);
  const nowhere = (await again.getDecisionPointAssignment(site, 'nowhere')).getCondition();
  expect('where nothing runs there is no condition', nowhere === null, nowhere);

  const grouped = await client.setGroupMembership({ classId: ['1', '2', '3'] });
  expect('groups are set', grouped.group.classId.length === 3, grouped);
  const working = await client.setWorkingGroup({ classId: '2' });
  expect('a working group is set', working.workingGroup.classId === '2', working);
  const aliases = await client.setAltUserIds([`${student}-alias`]);
  expect('other names are set', JSON.stringify(aliases).includes(`${student}-alias`), aliases);

  const value = { timestamp: '2026-11-22T10:00:00.000Z', metrics: { attributes: { totalTimeSeconds: 5 }, groupedMetrics: [] } };
  const logged = await client.log([value]);
  // UpGrade takes a value of a metric that no experiment asks for, and gives no row of it.
  expect('a value is logged', Array.isArray(logged) && logged.length === 0, logged);

  if (version !== '5.1') {
    // 5.1 asks for flags and metrics by calls that UpGrade has no more.
    const flags = await client.getAllFeatureFlags();
    expect('flags are listed', Array.isArray(flags), flags);
    expect('an unknown flag is off', (await client.hasFeatureFlag('unknown')) === false, 'on');
  }

  const stranger = new Client(`${student}-stranger`, host, 'assign-prog');
  let refused;
  try {
    await stranger.getAllExperimentConditions();
  } catch (error) {
    refused = error;
  }
  expect('a student who was never announced is refused', refused instanceof Error, 'taken');
  return told;
}

if (typeof module !== 'undefined') module.exports = { session };

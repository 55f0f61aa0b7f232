/** The tests of a version, run by the server. */

import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { api, must, type Schema } from '../../api/client';
import { Button } from '../../parts/button';
import { Empty, ProblemNote } from '../../parts/notes';
import { Table } from '../../parts/table';
import { Text } from '../../parts/text';
import { nameOf, type Policy, type PolicyVersion } from './query';
import { VersionChoice } from './version-choice';

export type Tested = Schema['PolicyTests'];
type Test = Tested['tests'][number];

export function Tests({ policy, versions }: { policy: Policy; versions: PolicyVersion[] }) {
  const [version, setVersion] = useState(policy.active ?? 0);
  const run = useMutation({
    mutationFn: async () => ({ version, tested: await must(api.POST('/api/v1/policy/tests', { body: { version: version === 0 ? undefined : version } })) }),
  });
  return (
    <>
      <p className="lead">A version is taken only where its tests pass. Here they run again, one by one. Nothing happens by it.</p>
      <div className="bar-of-fields">
        <VersionChoice label="Which version" policy={policy} versions={versions} value={version} choose={setVersion} withDefault />
        <Button look="primary" busy={run.isPending} onClick={() => run.mutate()}>
          Run its tests
        </Button>
      </div>
      {run.error !== null && <ProblemNote error={run.error} />}
      {run.data !== undefined && <Result of={run.data.tested} version={run.data.version} />}
    </>
  );
}

/** `12 tests passed`, or how many did not. */
export function summary(of: Tested): string {
  const all = of.passed + of.failed;
  if (of.failed === 0) return `${all} test${all === 1 ? '' : 's'} passed`;
  return `${of.failed} of ${all} tests did not pass`;
}

function Result({ of, version }: { of: Tested; version: number }) {
  if (of.tests.length === 0) {
    return (
      <Empty title="It has no tests">
        <p>
          A test is a rule whose name begins with <code>test_</code>, in a file <code>…_test.rego</code> beside the rules.
        </p>
      </Empty>
    );
  }
  // What did not pass comes first.
  const tests = of.tests.toSorted((a, b) => Number(a.outcome === 'passed') - Number(b.outcome === 'passed'));
  return (
    <section aria-label="Result of the tests">
      <p role="status">
        {nameOf(version)}: {summary(of)}.
      </p>
      <Table
        caption="Tests, those that did not pass first"
        rows={tests}
        keyOf={(test) => test.name}
        columns={[
          { title: 'Outcome', cell: (test) => <span className={`tag ${test.outcome === 'passed' ? 'good-tag' : 'bad'}`}>{test.outcome}</span> },
          { title: 'Test', cell: (test) => <Text of={test.name} /> },
          {
            title: 'Where',
            cell: (test) => (
              <code className="one-line">
                <Text of={`${test.file}:${test.line}`} />
              </code>
            ),
          },
          ...(of.failed === 0 ? [] : [{ title: 'What', cell: (test: Test) => <Text of={test.message ?? ''} /> }]),
        ]}
      />
    </section>
  );
}

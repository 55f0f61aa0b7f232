/** The playground: asks a policy about an action, which does not happen. */

import { useState } from 'react';
import { useMutation, useQuery } from '@tanstack/react-query';
import { api, must, type Schema } from '../../api/client';
import { Button } from '../../parts/button';
import { Area, FormBox, json } from '../../parts/form';
import { JsonView } from '../../parts/json';
import { Loading, ProblemNote } from '../../parts/notes';
import { useAddress } from '../../route/router';
import { written } from '../../text/exact';
import { decisionsQuery } from '../run/query';
import { answerOf } from './answer';
import { Reasons, Verdict } from './answer-view';
import type { Policy, PolicyVersion } from './query';
import { SAMPLE } from './sample';
import { VersionChoice } from './version-choice';

interface Props {
  policy: Policy;
  versions: PolicyVersion[];
}

export function Playground({ policy, versions }: Props) {
  const { query } = useAddress();
  const run = query.get('run') ?? '';
  const decisions = useQuery({ ...decisionsQuery(run), enabled: run !== '' });
  if (run !== '' && decisions.isLoading) return <Loading rows={10} />;
  const taken = decisions.data?.find((each) => each.decision === query.get('decision'));
  return (
    <>
      {decisions.error !== null && <ProblemNote error={decisions.error} />}
      <Asking key={taken?.decision ?? 'sample'} policy={policy} versions={versions} input={taken?.input ?? SAMPLE} />
    </>
  );
}

function Asking({ policy, versions, input }: Props & { input: unknown }) {
  const [version, setVersion] = useState(policy.active ?? 0);
  const asked = useMutation({
    mutationFn: async (form: FormData) => {
      const body = { input: json(form, 'input'), version: version === 0 ? undefined : version } as Schema['EvalPolicy'];
      return must(api.POST('/api/v1/policy/eval', { body }));
    },
  });
  return (
    <div className="playground">
      <FormBox act={(form) => asked.mutate(form)}>
        <div className="bar-of-fields">
          <VersionChoice label="Which version" policy={policy} versions={versions} value={version} choose={setVersion} />
          <Button type="submit" look="primary" busy={asked.isPending}>
            Ask
          </Button>
        </div>
        <Area name="input" label="What the policy is told" rows={24} code defaultValue={written(input, 2)} hint="Change it and ask. Nothing happens by it." />
      </FormBox>
      <section className="pane" aria-label="What it says" aria-live="polite">
        {asked.error !== null && <ProblemNote error={asked.error} />}
        {asked.data !== undefined ? <Said answer={asked.data} /> : asked.error === null && <p className="quiet">What the policy says stands here: the verdict, which rules spoke, and what they demand.</p>}
      </section>
    </div>
  );
}

function Said({ answer }: { answer: Schema['PolicyAnswer'] }) {
  const read = answerOf(answer.answer);
  return (
    <>
      <header className="pane-head">
        <h2>
          <Verdict of={answer.verdict} />
        </h2>
        {read.tier !== undefined && <span className={`tag radius-${read.tier}`}>tier {read.tier}</span>}
      </header>
      {answer.answer == null ? <pre className="explained">{answer.explained}</pre> : <Reasons answer={read} />}
      {answer.answer != null && (
        <section>
          <h3>The whole answer</h3>
          <JsonView value={answer.answer} what="the answer" />
        </section>
      )}
    </>
  );
}

/** What a step's attempts have cost, and which credentials they were given: ids and times, never a value. */

import type { Schema } from '../../api/client';
import { Facts } from '../../parts/facts';
import { Ago, Text } from '../../parts/text';

type Attempt = Schema['AttemptView'];

/** Millionths, as an amount that is neither `0` nor a row of digits. */
export function amount(micros: number, unit?: string | null): string {
  const number = (micros / 1_000_000).toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 6 });
  return unit == null ? number : `${number} ${unit}`;
}

/** One attempt's cost in words. */
export function costWords(cost: Schema['Cost']): string {
  const tokens = [
    cost.input_tokens == null ? '' : `${cost.input_tokens.toLocaleString('en-US')} tokens in`,
    cost.output_tokens == null ? '' : `${cost.output_tokens.toLocaleString('en-US')} out`,
  ];
  const price = cost.unpriced === true ? 'price unknown' : amount(cost.micros, cost.unit);
  return [price, tokens.filter(Boolean).join(', '), [cost.provider, cost.model].filter(Boolean).join(' ')].filter(Boolean).join(' · ');
}

export function CostAndCredentials({ tried }: { tried: Attempt[] }) {
  const paid = tried.filter((attempt) => attempt.cost != null);
  const used = tried.flatMap((attempt) => (attempt.credentials_used ?? []).map((credential) => ({ attempt: attempt.attempt, ...credential })));
  return (
    <>
      {paid.length > 0 && (
        <section>
          <h3>Cost</h3>
          <ul className="plain-list">
            {paid.map((attempt) => (
              <li key={attempt.attempt}>
                {tried.length > 1 && <span className="quiet">Attempt {attempt.attempt}: </span>}
                <Text of={costWords(attempt.cost!)} />
              </li>
            ))}
          </ul>
        </section>
      )}
      {used.length > 0 && (
        <section>
          <h3>Credentials used</h3>
          {used.map((credential) => (
            <Facts
              key={`${credential.attempt} ${credential.credential_id} ${credential.fetched_at}`}
              of={[
                ['Credential', <code className="wrap"><Text of={credential.credential_id} /></code>],
                ...(tried.length > 1 ? [['Attempt', credential.attempt] as [string, number]] : []),
                ['Fetched', <Ago at={credential.fetched_at} />],
                ['Revoked', credential.revoked_at == null ? <span className="quiet">no lease to revoke</span> : <Ago at={credential.revoked_at} />],
              ]}
            />
          ))}
        </section>
      )}
    </>
  );
}

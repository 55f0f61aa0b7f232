import { queryOptions } from '@tanstack/react-query';
import { api, must, Refusal } from '../../api/client';
import { bytesOf, sha256, signedBytes, verify, type Verdict } from '../audit/signature';

export interface Evidence {
  signature: Verdict;
  sha256: string;
  /** Whether the hash is that of what came; unknown where the browser cannot say. */
  intact?: boolean;
  /** 0, or the number of the addendum. */
  number: number;
  tells: string;
  /** The run that it is about. */
  about?: string;
}

interface Envelope {
  payload: string;
  payloadType: string;
  signatures: { keyid: string; sig: string }[];
}

interface Statement {
  predicate: {
    number: number;
    record: { run?: { run: string }; steps?: unknown[]; approvals?: unknown[]; receipts?: unknown[]; decisions?: unknown[] };
    logs: { entries: unknown[] }[];
  };
}

const NOT_SEALED = 'EVIDENCE_NOT_SEALED';
const TRIES_MAX = 20;

export function isBeingSealed(error: Error | null): boolean {
  return error instanceof Refusal && error.problem.code === NOT_SEALED;
}

export const evidenceQuery = (run: string, pem: string | undefined) =>
  queryOptions({
    queryKey: ['evidence', run, pem],
    queryFn: async () => {
      const answer = await api.GET('/api/v1/runs/{run}/evidence', { params: { path: { run } }, parseAs: 'text' });
      const text = await must(Promise.resolve(answer));
      return readEvidence(text, answer.response.headers.get('interlock-sha256') ?? '', pem ?? '');
    },
    // It is asked for until the end of the run is in the log.
    retry: (failures, error) => isBeingSealed(error) && failures < TRIES_MAX,
    retryDelay: 1_000,
  });

export async function readEvidence(text: string, hash: string, pem: string): Promise<Evidence> {
  const { payload, payloadType, signatures } = JSON.parse(text) as Envelope;
  const bytes = bytesOf(payload);
  const { predicate } = JSON.parse(new TextDecoder().decode(bytes)) as Statement;
  const computed = await sha256(text);
  return {
    signature: await verify(pem, signedBytes(payloadType, bytes), bytesOf(signatures[0]?.sig ?? '')),
    sha256: hash,
    intact: computed === undefined ? undefined : computed === hash,
    number: predicate.number,
    tells: inWords(predicate),
    about: predicate.record.run?.run,
  };
}

function inWords({ record, logs }: Statement['predicate']): string {
  const count = (list: unknown[] | undefined, word: string) => ((list?.length ?? 0) === 0 ? '' : `${list!.length} ${word}${list!.length === 1 ? '' : 's'}`);
  const parts = [count(record.steps, 'step'), count(record.approvals, 'approval'), count(record.receipts, 'receipt'), count(record.decisions, 'decision')];
  const entries = logs.flatMap((log) => log.entries);
  return [...parts, `${entries.length} entr${entries.length === 1 ? 'y' : 'ies'} of the log`].filter(Boolean).join(', ');
}

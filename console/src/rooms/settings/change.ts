/** What can be done about a change that two admins have to agree to. */

import type { Schema } from '../../api/client';

export type Change = Schema['ChangeView'];
export type ChangeDeed = 'agree' | 'reject' | 'carry out';

/** The admin who asked for the change carries it out; the other admins decide. */
export function deedsFor({ state, asked_by }: Change, me: string): ChangeDeed[] {
  if (state === 'approved') return asked_by === me ? ['carry out'] : [];
  return state === 'requested' && asked_by !== me ? ['agree', 'reject'] : [];
}

/** Whether something of the request is not kept, because it is secret. */
export function isHidden(body: unknown): boolean {
  if (body === '(hidden)') return true;
  return typeof body === 'object' && body !== null && Object.values(body).some(isHidden);
}

import { expect, it } from 'vitest';
import { GARDEN_ANNOTATION, otherOwner } from '../../../operator/controllers/shoot/ownership.ts';

const namespace = (annotations?: Record<string, string>) => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: 'shoot--default--demo', ...(annotations && { annotations }) },
});

it.each([
  ['that is not there', undefined, undefined],
  ['of before there were marks', namespace(), undefined],
  ['of this garden', namespace({ [GARDEN_ANNOTATION]: 'ours' }), undefined],
  ['of another', namespace({ [GARDEN_ANNOTATION]: 'theirs' }), 'theirs'],
])('a namespace %s', (_, found, owner) => expect(otherOwner(found, 'ours')).toBe(owner));

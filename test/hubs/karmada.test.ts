import { expect } from 'vitest';
import { SECRETS } from '../../operator/kube/resources.ts';
import type { TestApiserver } from '../kit/apiserver.ts';
import { placesWork } from './karmada-scenario.ts';

const secrets = async ({ client }: TestApiserver) =>
  (await client.list(SECRETS, { namespace: 'karmada-cluster' })).items.map(({ metadata }) => metadata.name).sort();
const of = (...names: string[]) => names.flatMap((name) => [name, `${name}-impersonator`]);

placesWork({
  name: 'karmada, push',
  spec: { type: 'Karmada', karmada: { renewsTokens: true, evicts: true } },
  hasJoined: async (hub) => expect(await secrets(hub)).toEqual(of('shop--demo', 'shop--small')),
  hasLeft: async (hub) => expect(await secrets(hub)).toEqual(of('shop--demo', 'shop--third')),
});

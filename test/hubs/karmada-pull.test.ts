import { expect } from 'vitest';
import {
  CLUSTERROLES,
  DEPLOYMENTS,
  LEASES,
  NAMESPACES,
  RBAC_ROLES,
  SECRETS,
  SERVICEACCOUNTS,
} from '../../operator/kube/resources.ts';
import type { TestApiserver } from '../kit/apiserver.ts';
import { placesWork } from './karmada-scenario.ts';

const PATIENCE_MS = 120_000;
const lease = ({ client }: TestApiserver) => client.getOrUndefined(LEASES, 'shop--small', 'karmada-cluster');

placesWork({
  name: 'karmada, pull',
  spec: {
    type: 'Karmada',
    karmada: { syncMode: 'Pull', evicts: true },
    member: { agentImage: 'docker.io/karmada/karmada-agent:v1.19.0' },
  },
  runsIn: (karmada, name, member) => karmada.startAgent(name, member),
  async hasJoined(hub, member) {
    expect((await hub.client.list(SECRETS, { namespace: 'karmada-cluster' })).items).toEqual([]);
    expect(await lease(hub)).toBeDefined();
    expect(await member.client.getOrUndefined(NAMESPACES, 'karmada-cluster')).toBeUndefined();
    expect(await member.client.getOrUndefined(DEPLOYMENTS, 'coppice-hub-test-agent', 'kube-system')).toBeDefined();
  },
  async hasLeft(hub) {
    for (const kind of [SERVICEACCOUNTS, CLUSTERROLES, RBAC_ROLES]) {
      const names = (await hub.client.list(kind)).items.map(({ metadata }) => metadata.name);
      expect(names.filter((name) => name.includes('shop--small'))).toEqual([]);
    }
    await expect.poll(() => lease(hub), { timeout: PATIENCE_MS }).toBeUndefined();
  },
});

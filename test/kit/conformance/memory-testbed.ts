import { CoppiceError } from '../../../operator/api/errors.ts';
import type { CloudAccount, CloudPool, Owner } from '../../../providers/cloud.ts';
import { memoryProfile } from '../managed-garden.ts';
import { MemoryCloud } from '../memory-cloud.ts';
import type { CloudTestbed } from './cloud-testbed.ts';

/** The cloud in memory by which controllers are tested: what it lets them believe must be what the contract says. */
export async function memoryTestbed(): Promise<CloudTestbed> {
  const cloud = new MemoryCloud();
  let writes = 0;
  const remove = cloud.made.delete.bind(cloud.made);
  cloud.made.delete = (key) => {
    writes++;
    return remove(key);
  };
  const put = cloud.made.set.bind(cloud.made);
  cloud.made.set = (key, made) => {
    writes++;
    return put(key, made);
  };
  const find = (owner: Owner, pool: CloudPool) =>
    [...cloud.made].find(([, made]) => made.owner.uid === owner.uid && made.type === `pool ${pool.name}`);
  const account = (): CloudAccount => ({ id: 'account-1', credentials: { accessKey: 'key-1' } });
  return {
    managed: cloud.managed(),
    profile: memoryProfile,
    region: 'here',
    zones: ['here-a', 'here-b'],
    versions: { old: '1.35.4', new: '1.36.3' },
    account,
    secrets: () => ['key-1'],
    state: async () => ({ url: 'file:///nowhere', env: {} }),
    loseState: async () => {},
    cutShort: () => cloud.fail('delete cluster', new Error('the end')),
    resources: () => [...cloud.made.values()].map(({ id }) => id),
    writes: () => writes,
    pool(owner, pool) {
      const made = find(owner, pool)?.[1];
      if (!made) return undefined;
      const { machineType, desired = 0, spot, labels, taints, zones } = JSON.parse(made.spec) as CloudPool;
      return {
        machineTypes: [machineType],
        nodes: desired,
        spot,
        labels,
        taints,
        zones: zones.length > 0 ? zones : ['here-a', 'here-b'],
      };
    },
    nodes(owner, pool) {
      const made = find(owner, pool)?.[1];
      return made ? cloud.nodes(made) : [];
    },
    async damage(owner, pool) {
      remove(find(owner, pool)![0]);
    },
    troubles: [
      {
        what: 'credentials are revoked',
        code: 'ERR_INFRA_UNAUTHENTICATED',
        everything: true,
        begin: () => cloud.accounts.clear(),
      },
      { what: 'a quota', code: 'ERR_INFRA_QUOTA_EXCEEDED', begin: () => Object.assign(cloud, { quota: 3 }) },
      {
        what: 'machines are sold out',
        code: 'ERR_INFRA_RESOURCES_DEPLETED',
        begin: () => cloud.fail('pool more', new CoppiceError('ERR_INFRA_RESOURCES_DEPLETED', 'no m left in here-a')),
      },
    ],
    heal() {
      cloud.accounts.set('key-1', 'account-1');
      cloud.quota = Number.POSITIVE_INFINITY;
    },
    close: async () => {},
  };
}

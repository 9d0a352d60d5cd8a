import { describe, expect, it } from 'vitest';
import type { CloudContext, TaggedResource, WantedCluster } from '../../../providers/cloud.ts';
import type { LayeredCloud } from '../../../providers/pulumi/layers.ts';
import { leftOver, leftOverLayers } from '../../../providers/pulumi/left-over-layers.ts';
import type { StackRequest } from '../../../providers/pulumi/request.ts';
import type { StackRunner } from '../../../providers/pulumi/stack-runner.ts';

const owner = { technicalID: 'shoot--a--b', uid: 'u1', name: 'b', namespace: 'a', garden: 'g' };
const tagged = (part: string | undefined, more: Partial<TaggedResource> = {}): TaggedResource => ({
  id: `//cloud/${part}`,
  type: 'some:thing',
  region: 'here',
  owner,
  ...(part !== undefined && { part }),
  ...more,
});
const names = (pools: readonly { name: string; template?: string }[]) =>
  pools.map(({ name, template }) => [name, ...(template === undefined ? [] : [template])]);

describe('leftOver', () => {
  it('names the pools of forgotten machines at AWS by tags', () => {
    const told = ['pool-web', 'pool-web', 'nat-z2', 'private-z1', 'private-z2', 'pool-control-plane', 'vpc'];
    const left = leftOver([...told, 'pool-control-plane-first', undefined].map((part) => tagged(part)));
    expect(left).toMatchObject({ isManaged: false, zones: ['z2', 'z1'], controlPlane: { name: 'control-plane' } });
    expect([names(left.pools), names(left.loose)]).toEqual([[['web']], [['control-plane-first']]]);
  });

  it('names pools and templates of forgotten machines at Google by tags', () => {
    const template = (pool: string, hash: string) => tagged(`template-${pool}`, { id: `//c/x-${pool}-${hash}` });
    const left = leftOver([
      tagged('pool-web'),
      template('web', '0000000a'),
      template('web', '0000000b'),
      template('gone', '0000000c'),
      template('control-plane', '0000000d'),
    ]);
    expect(left.controlPlane.template).toBe('x-control-plane-0000000d');
    expect(names(left.pools)).toEqual([
      ['gone', 'x-gone-0000000c'],
      ['web', 'x-web-0000000a'],
    ]);
    expect(names(left.loose)).toEqual([['left-0000000b', 'x-web-0000000b']]);
  });

  it('names all node groups of a cluster at AWS, even several of one pool', () => {
    const group = (name: string) =>
      tagged('pool-web', { type: 'eks:nodegroup', id: `arn:aws:eks:here:1:nodegroup/blue/${name}/uuid` });
    const left = leftOver([
      tagged('cluster', { type: 'eks:cluster', id: 'arn:aws:eks:here:1:cluster/blue' }),
      group('web-0000000a'),
      group('web-0000000b'),
      tagged('pool-web'),
      tagged('pool-gone'),
    ]);
    expect(left.elsewhere).toEqual([]);
    expect(left.pools.map(({ name, nodeGroup }) => [name, nodeGroup])).toEqual([
      ['gone', undefined],
      ['web', 'web-0000000a'],
      ['left-0000000b', 'web-0000000b'],
    ]);
  });

  it('tells whether the cluster is managed', () => {
    expect(leftOver([tagged('pool-web'), tagged(undefined, { type: 'eks:cluster' })]).isManaged).toBe(true);
  });
});

describe('leftOverLayers', () => {
  async function destroyed(left: TaggedResource[], fails?: string): Promise<string[]> {
    const order: string[] = [];
    const cloud: Partial<LayeredCloud> = {
      provider: 'aws',
      credentials: async () => ({}),
      settings: () => ({}),
      findExisting: () => async () => undefined,
      unmadeNetwork: () => ({ network: 'none', subnets: [] }),
    };
    const runner: Partial<StackRunner> = {
      async destroy({ stack, inputs }: StackRequest) {
        if (stack.layer === fails) throw new Error('in use');
        const { pools } = inputs as { pools?: { name: string }[] };
        order.push([stack.layer, ...(pools ?? []).map(({ name }) => name)].join(' '));
      },
    };
    const destroy = leftOverLayers(runner as StackRunner, cloud as LayeredCloud, {
      tagged: async () => left,
      destroy: async (_, { zones, pools }) =>
        void order.push(['cluster', ...pools.map(({ name }) => name), 'and network in', ...zones].join(' ')),
    });
    const ctx = { owner, account: { id: '1', credentials: {} }, region: 'here' } as Partial<CloudContext>;
    await destroy(ctx as CloudContext, { zones: ['z1', 'z2'] } as WantedCluster).catch(() => order.push('failed'));
    return order;
  }

  it("destroys the owner's layers from top to bottom, and no foreign pools", async () => {
    const other = tagged('pool-theirs', { owner: { ...owner, uid: 'u2' } });
    expect(await destroyed([tagged('pool-web'), tagged('pool-control-plane-first'), other])).toEqual([
      'machines web',
      'control-plane',
      'machines control-plane-first',
      'endpoint',
      'cluster and network in z1 z2',
    ]);
    expect(await destroyed([])).toEqual(['machines', 'control-plane', 'endpoint', 'cluster and network in z1 z2']);
  });

  it('keeps lower layers if an upper one fails', async () => {
    expect(await destroyed([tagged('private-z3')], 'control-plane')).toEqual(['machines', 'failed']);
  });

  it('destroys nothing while machines of them belong to a foreign cluster', async () => {
    const group = { type: 'eks:nodegroup', id: 'arn:aws:eks:here:1:nodegroup/theirs/web-0000000a/uuid' };
    expect(await destroyed([tagged('pool-web', group)])).toEqual(['failed']);
  });

  it('destroys the layers of a managed cluster', async () => {
    const cluster = tagged(undefined, { type: 'microsoft.containerservice/managedClusters' });
    expect(await destroyed([cluster, tagged('pool-web')])).toEqual(['cluster web and network in z1 z2']);
  });
});

import { describe, expect, it, vi } from 'vitest';
import { CoppiceError, type ErrorCode, isRetryable } from '../../../operator/api/errors.ts';
import {
  beginRecords,
  DNS_LOOKS,
  endRecords,
  outcomesOf,
  readyNames,
  removeRecords,
} from '../../../operator/controllers/shoot/dns/dns-records.ts';
import type { Operation } from '../../../operator/controllers/shoot/operation.ts';
import { newShootState } from '../../../operator/controllers/shoot/state.ts';
import { FairQueue } from '../../../operator/kube/fair-queue.ts';
import { silent } from '../../../operator/kube/log.ts';
import type { DNSContext, DNSZone, ProviderDNS, RecordSet } from '../../../providers/dns.ts';
import { partOf } from '../../kit/builders/partial.ts';

const ZONE: DNSZone = { id: 'z', domain: 'x.org', private: false };
const HOST = 'api.x.org';
const never = new AbortController().signal;

/** An operation on a cluster with one name, in a zone that does as it is told. */
function testbed(more: Partial<ProviderDNS> = {}, dnsTurns = new FairQueue(DNS_LOOKS)) {
  let now = new Date('2026-01-01T00:00:00Z');
  const asked: (RecordSet | string)[] = [];
  const events: string[] = [];
  const again = vi.fn();
  const dns: ProviderDNS = {
    zoneOf: async () => ZONE,
    ensure: async (_ctx, _zone, wanted) => asked.push(wanted) > 0,
    remove: async (_ctx, _zone, name) => asked.push(name) > 0,
    claimed: async () => [],
    ...more,
  };
  const op = partOf<Operation>({
    names: [{ host: HOST, domain: 'external', provider: 'p', choice: {}, credentials: { namespace: 'shop' } }],
    state: newShootState(),
    shoot: { metadata: { name: 'blue', namespace: 'shop' }, spec: {} },
    values: { addresses: { apiServer: '10.0.0.1', etcd: [] } },
    deps: {
      now: () => now,
      log: silent,
      again,
      dnsTurns,
      dns: async (_shoot: unknown, _name: unknown, signal: AbortSignal) => ({
        dns,
        ctx: { signal, account: { id: 'a' } } as DNSContext,
      }),
      recordEvent: (_object: unknown, type: string, reason: string, message: string) =>
        events.push(`${type} ${reason} ${message}`),
    },
  });
  return {
    op,
    dns,
    asked,
    events,
    again,
    pass: (ms: number) => {
      now = new Date(+now + ms);
    },
    look: async () => {
      await beginRecords(op);
      await op.state.dns!.running;
    },
  };
}
const refusing = (code: ErrorCode) => async () => {
  throw new CoppiceError(code, 'no');
};

describe('the DNS records of a cluster', () => {
  it('are created in the background: an unresponsive cloud blocks nothing', async () => {
    const { op } = testbed({
      zoneOf: ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    });
    await beginRecords(op);
    expect(op.state.dns!.running).toBeDefined();
    expect(readyNames(op)).toEqual([]);
    await endRecords(op.state);
    expect(op.state.dns!.running).toBeUndefined();
  });

  it('are checked few at a time per account, however many clusters there are', async () => {
    let [going, most] = [0, 0];
    const zoneOf = async () => {
      most = Math.max(most, ++going);
      await new Promise(setImmediate);
      going--;
      return ZONE;
    };
    const turns = new FairQueue(DNS_LOOKS);
    const testbeds = Array.from({ length: 20 }, (_, i) => {
      const one = testbed({ zoneOf }, turns);
      one.op.names[0]!.host = `api.${i}.x.org`;
      return one;
    });
    await Promise.all(testbeds.map(({ look }) => look()));
    expect([most, testbeds.filter(({ op }) => readyNames(op).length === 1).length]).toEqual([DNS_LOOKS.perGroup, 20]);
  });

  it("take turns between namespaces: one of a single cluster follows the first of another's ten", async () => {
    const turns = new FairQueue({ total: 1, perGroup: 1 });
    const looked: (string | undefined)[] = [];
    const testbeds = Array.from({ length: 11 }, (_, i) => {
      const zoneOf = async (_ctx: unknown, host: string) => {
        looked.push(host);
        return ZONE;
      };
      const one = testbed({ zoneOf }, turns);
      one.op.shoot.metadata.namespace = i < 10 ? 'big' : 'small';
      one.op.names[0]!.host = `api.${i}.x.org`;
      return one;
    });
    await Promise.all(testbeds.map(({ look }) => look()));
    expect([looked.indexOf('api.10.x.org'), looked.length]).toEqual([1, 11]);
  });

  it('are checked hourly, and reconcile the cluster afterwards', async () => {
    const { op, asked, again, look, pass } = testbed();
    await look();
    expect(asked).toEqual([{ name: HOST, type: 'A', ttl: 120, values: ['10.0.0.1'] }]);
    expect(readyNames(op)).toMatchObject([{ host: HOST, target: '10.0.0.1' }]);
    expect(again).toHaveBeenCalledTimes(1);
    pass(45 * 60_000);
    await look();
    expect(asked).toHaveLength(1);
    pass(15 * 60_000);
    await look();
    expect(asked).toHaveLength(2);
  });

  it('follow the address at once', async () => {
    const { op, asked, look } = testbed();
    await look();
    op.values = { ...op.values, endpoint: { host: 'lb.example.org', port: 6443 } };
    await look();
    expect(asked.at(-1)).toMatchObject({ type: 'CNAME', values: ['lb.example.org'] });
  });

  it('report a persistent fault once, and stay as reported without new knowledge', async () => {
    const { op, dns, events, look, pass } = testbed();
    await look();
    Object.assign(dns, { ensure: refusing('ERR_INFRA_RATE_LIMITS_EXCEEDED') });
    pass(3600_000);
    const toldAfter: number[] = [];
    for (const wait of [0, 5_000, 10_000, 20_000, 40_000]) {
      pass(wait);
      await look();
      toldAfter.push(events.length);
    }
    expect(toldAfter).toEqual([0, 0, 0, 1, 1]);
    expect(op.state.dns!.failures).toBe(5);
    expect(events).toEqual([expect.stringContaining('Warning DNSRecordNotReady api.x.org: no. The cloud throttles')]);
    expect(readyNames(op)).toHaveLength(1);
    Object.assign(dns, { ensure: refusing('ERR_INFRA_DEPENDENCIES') });
    pass(300_000);
    await look();
    expect(readyNames(op)).toEqual([]);
  });

  it('with a wrong target are not reported as correct, whatever prevents the update', async () => {
    const { op, dns, look } = testbed();
    await look();
    Object.assign(dns, { ensure: refusing('ERR_INFRA_UNAUTHORIZED') });
    op.values = { ...op.values, endpoint: { host: 'lb.example.org', port: 6443 } };
    await look();
    expect(readyNames(op)).toEqual([]);
  });

  it('are forgotten when people manage them themselves', async () => {
    const { op, look } = testbed({ ensure: refusing('ERR_INFRA_UNAUTHORIZED') });
    await look();
    const unmanaged = { ...op, names: [] };
    expect(outcomesOf(unmanaged)).toEqual([]);
    await beginRecords(unmanaged);
    expect(op.state.dns).toBeUndefined();
  });

  it('require a zone', async () => {
    const { op, look } = testbed({ zoneOf: async () => undefined });
    await look();
    expect(op.state.dns!.outcomes[0]!.problem).toMatchObject({
      codes: ['ERR_CONFIGURATION_PROBLEM'],
      message: expect.stringContaining('Make a zone for a domain that api.x.org ends with'),
    });
  });
});

describe('the DNS records of a deleted cluster', () => {
  it('are deleted', async () => {
    const { op, asked } = testbed();
    await removeRecords(op, never);
    expect(asked).toEqual([HOST]);
  });

  it('are gone with their zone', async () => {
    const { op, asked, events } = testbed({ zoneOf: async () => undefined });
    await removeRecords(op, never);
    expect([asked, events]).toEqual([[], []]);
  });

  it.each<ErrorCode>(['ERR_INFRA_UNAUTHENTICATED', 'ERR_INFRA_UNAUTHORIZED', 'ERR_RETRYABLE_CONFIGURATION_PROBLEM'])(
    'are left behind, which is said, on %s',
    async (code) => {
      const { op, events } = testbed({ remove: refusing(code) });
      await removeRecords(op, never);
      expect(events).toEqual([
        expect.stringContaining('Warning DNSRecordLeftBehind the record of api.x.org may be left behind: no'),
      ]);
      expect(op.state.dns!.outcomes[0]!.problem!.codes).toEqual([code]);
    },
  );

  it.each<ErrorCode>(['ERR_INFRA_RATE_LIMITS_EXCEEDED', 'ERR_RETRYABLE_INFRA_DEPENDENCIES'])(
    'are tried again on %s',
    async (code) => {
      const { op, events } = testbed({ remove: refusing(code) });
      const failure = await removeRecords(op, never).catch((error: unknown) => error);
      expect(failure).toMatchObject({ message: expect.stringContaining('no') });
      // Or nobody would come back to it.
      expect(isRetryable([(failure as CoppiceError).code])).toBe(true);
      expect(events).toEqual([]);
    },
  );

  it('do not block the deletion for ever', async () => {
    const { op, events, pass } = testbed({ remove: refusing('ERR_RETRYABLE_INFRA_DEPENDENCIES') });
    op.shoot.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
    await expect(removeRecords(op, never)).rejects.toThrow('no');
    pass(11 * 60_000);
    await removeRecords(op, never);
    expect(events).toEqual([expect.stringContaining('may be left behind')]);
  });
});

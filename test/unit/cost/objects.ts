import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import type { ClusterSize } from '../../../operator/api/cost.ts';
import type { Quota } from '../../../operator/api/quota.ts';
import { buildCloudProfile, buildQuota } from '../../kit/builders/objects.ts';

type QuotaSpec = Quota['spec'];

type CloudProfileSpec = CloudProfile['spec'];

export const profile = (spec: Partial<CloudProfileSpec> = {}) =>
  buildCloudProfile({
    metadata: { name: 'cloud' },
    spec: {
      type: 'cloud',
      kubernetes: { versions: [{ version: '1.36.3', classification: 'supported' }] },
      machineTypes: [
        {
          name: 'small',
          cpu: '2',
          gpu: '0',
          memory: '8Gi',
          price: {
            hourly: '0.1',
            spot: '0.04',
            currency: 'USD',
            region: 'here',
            regions: [{ name: 'there', hourly: '0.12' }],
          },
        },
        { name: 'gpu', cpu: '4', gpu: '1', memory: '16Gi', price: { hourly: '1.000001', currency: 'USD' } },
        { name: 'euro', cpu: '1', gpu: '0', memory: '1Gi', price: { hourly: '1', currency: 'EUR' } },
        { name: 'free', cpu: '1', gpu: '0', memory: '1Gi' },
      ],
      regions: [{ name: 'here' }, { name: 'there' }, { name: 'elsewhere' }],
      controlPlaneFee: { hourly: '0.10', currency: 'USD' },
      defaults: { mode: 'Hosted', region: 'here', machineType: 'small' },
      ...spec,
    },
  });

/** `small*3` is three machines, `small*3*spot` three spot machines; each its own pool. */
export const size = (region: string, mode: ClusterSize['mode'], ...machines: string[]): ClusterSize => ({
  region,
  ...(mode && { mode }),
  pools: machines.map((text, index) => {
    const [machineType, count, spot] = text.split('*');
    return { name: `p${index}`, machineType: machineType!, count: Number(count), ...(spot && { spot: true }) };
  }),
});

export function quota(metrics: QuotaSpec['metrics'], more: Partial<QuotaSpec> = {}, name = 'team') {
  const made = buildQuota({
    metadata: { name, namespace: 'shop', generation: 1 },
    spec: { currency: 'USD', ...more },
  });
  // Not merged: it would limit the builder's metric as well.
  return { ...made, spec: { ...made.spec, metrics } };
}

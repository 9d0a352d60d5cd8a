import { configurationProblem } from './errors.ts';

/** A DNS label: other characters could turn a host name made of it into another host. */
const REGION = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** Whether a text is a valid cloud region or zone. */
export const isRegion = (text: string): boolean => REGION.test(text);

/** The region, safe for host names and paths. Throws a configuration problem for an invalid one. */
export function checkedRegion(region: string): string {
  if (isRegion(region)) return region;
  throw configurationProblem(
    `${JSON.stringify(region.slice(0, 80))} can be no region: it would become part of a host's name`,
    'Name a region of the CloudProfile in spec.region.',
  );
}

// Stands in for packages that azurite requires but does not use without telemetry and without a database: 300 MB of 360.
module.exports = {};

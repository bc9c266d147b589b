'use strict';

const { BinaryError, findBinary } = require('./binary');
const { ControlError, Server, StartError, startZenobe } = require('./server');
const { useZenobe } = require('./hooks');

module.exports = { BinaryError, ControlError, Server, StartError, findBinary, startZenobe, useZenobe };

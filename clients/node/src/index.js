'use strict';

const { BinaryError, findBinary } = require('./binary');
const { Server, StartError, startZenobe } = require('./server');
const { useZenobe } = require('./hooks');

module.exports = { BinaryError, Server, StartError, findBinary, startZenobe, useZenobe };

module.exports = { testEnvironment: 'node', rootDir: __dirname };

import java.util.Map;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;
import software.amazon.awssdk.services.dynamodb.model.AttributeDefinition;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;
import software.amazon.awssdk.services.dynamodb.model.BillingMode;
import software.amazon.awssdk.services.dynamodb.model.KeySchemaElement;
import software.amazon.awssdk.services.dynamodb.model.KeyType;
import software.amazon.awssdk.services.dynamodb.model.ScalarAttributeType;

public class QuickStart {
  private static final String TABLE = "Music";

  public static void main(String[] arguments) {
    try (DynamoDbClient dynamodb = DynamoDbClient.create()) {
      dynamodb.createTable(request -> request
          .tableName(TABLE)
          .attributeDefinitions(text("Artist"), text("Song"))
          .keySchema(key("Artist", KeyType.HASH), key("Song", KeyType.RANGE))
          .billingMode(BillingMode.PAY_PER_REQUEST));
      dynamodb.waiter().waitUntilTableExists(request -> request.tableName(TABLE));

      var artist = AttributeValue.fromS("Nina Simone");
      var song = AttributeValue.fromS("Sinnerman");
      var one = AttributeValue.fromN("1");
      dynamodb.putItem(request -> request
          .tableName(TABLE)
          .item(Map.of("Artist", artist, "Song", song, "Plays", one))
          .conditionExpression("attribute_not_exists(Artist)"));
      dynamodb.updateItem(request -> request
          .tableName(TABLE)
          .key(Map.of("Artist", artist, "Song", song))
          .updateExpression("ADD Plays :one")
          .expressionAttributeValues(Map.of(":one", one)));
      var found = dynamodb.queryPaginator(request -> request
          .tableName(TABLE)
          .keyConditionExpression("Artist = :artist")
          .expressionAttributeValues(Map.of(":artist", artist)));
      found.items().forEach(item ->
          System.out.println(item.get("Song").s() + ": " + item.get("Plays").n() + " plays"));

      dynamodb.deleteTable(request -> request.tableName(TABLE));
    }
  }

  private static AttributeDefinition text(String name) {
    return AttributeDefinition.builder().attributeName(name).attributeType(ScalarAttributeType.S).build();
  }

  private static KeySchemaElement key(String name, KeyType type) {
    return KeySchemaElement.builder().attributeName(name).keyType(type).build();
  }
}

package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

type item = map[string]types.AttributeValue

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	settings, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return err
	}
	client := dynamodb.NewFromConfig(settings)
	table := aws.String("Music")

	_, err = client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: table,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("Artist"), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String("Song"), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("Artist"), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String("Song"), KeyType: types.KeyTypeRange},
		},
		BillingMode: types.BillingModePayPerRequest,
	})
	if err != nil {
		return err
	}
	waiter := dynamodb.NewTableExistsWaiter(client)
	if err := waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: table}, time.Minute); err != nil {
		return err
	}

	artist := &types.AttributeValueMemberS{Value: "Nina Simone"}
	song := &types.AttributeValueMemberS{Value: "Sinnerman"}
	one := &types.AttributeValueMemberN{Value: "1"}
	_, err = client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName:           table,
		Item:                item{"Artist": artist, "Song": song, "Plays": one},
		ConditionExpression: aws.String("attribute_not_exists(Artist)"),
	})
	if err != nil {
		return err
	}
	_, err = client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                 table,
		Key:                       item{"Artist": artist, "Song": song},
		UpdateExpression:          aws.String("ADD Plays :one"),
		ExpressionAttributeValues: item{":one": one},
	})
	if err != nil {
		return err
	}
	found, err := client.Query(ctx, &dynamodb.QueryInput{
		TableName:                 table,
		KeyConditionExpression:    aws.String("Artist = :artist"),
		ExpressionAttributeValues: item{":artist": artist},
	})
	if err != nil {
		return err
	}
	for _, item := range found.Items {
		title := item["Song"].(*types.AttributeValueMemberS).Value
		plays := item["Plays"].(*types.AttributeValueMemberN).Value
		fmt.Printf("%s: %s plays\n", title, plays)
	}

	_, err = client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: table})
	return err
}
